#pragma once
// Checks of UTF-8.

#include <cstddef>
#include <string_view>

namespace treadle {

// The length in bytes of the UTF-8 character at the front of `text`, which must not be empty; 0 if there is none.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace treadle
