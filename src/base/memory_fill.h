#pragma once
// The environment variable TREADLE_FILL_MEMORY, a number from 0 to 255, fills the memory of tensors and of runs with
// this byte before it is used. A result that changes with the number depends on memory that was never written.

#include <cstddef>
#include <optional>
#include <string_view>

namespace treadle {

inline constexpr const char* kFillVariable = "TREADLE_FILL_MEMORY";

// Parses the variable's text; nothing if it is no such number.
std::optional<unsigned char> fill_named(std::string_view text);
// Fills [data, data + bytes) if the process was started with a number.
void fill_fresh(void* data, size_t bytes);

}  // namespace treadle
