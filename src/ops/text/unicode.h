#pragma once
// What the text operators need to know of Unicode. Text is UTF-8; bytes that are no UTF-8 stay as they are.

#include <string_view>

#include "base/counted.h"

namespace treadle::text {

String to_lower(std::string_view text);
String to_upper(std::string_view text);
// Texts that differ in case only have equal folds.
String fold_case(std::string_view text);

// Length in bytes of the white space that `text` begins with: one character's, 0 where it begins with another.
size_t leading_space(std::string_view text);
// Length in bytes of the first character of `text`, which is not empty.
size_t leading_character(std::string_view text);

}  // namespace treadle::text
