#pragma once
// UTF-8 as files claim to be written in.

#include <cstddef>
#include <string_view>

namespace treadle {

// Bytes of the UTF-8 character at the front of `text`, which is not empty; 0 when there is none.
size_t utf8_length(std::string_view text);
bool is_utf8(std::string_view text);

}  // namespace treadle
