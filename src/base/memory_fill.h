#pragma once
// A number from 0 to 255 in the environment variable TREADLE_FILL_MEMORY fills the memory of tensors and of runs when
// it is handed out. A result that changes with the number depends on memory that was read before anything was
// written to it.

#include <cstddef>
#include <optional>
#include <string_view>

namespace treadle {

inline constexpr const char* kFillVariable = "TREADLE_FILL_MEMORY";

// What the variable's text means; none: nothing.
std::optional<unsigned char> fill_named(std::string_view text);
// Fills [data, data + bytes) if the process was started with a number.
void fill_fresh(void* data, size_t bytes);

}  // namespace treadle
