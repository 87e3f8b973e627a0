#pragma once
// Unicode for the text operators. Text is UTF-8; bytes that are not UTF-8 do not change.

#include <string_view>

#include "base/counted.h"

namespace treadle::text {

String to_lower(std::string_view text);
String to_upper(std::string_view text);
// Texts that differ in case only have equal folds.
String fold_case(std::string_view text);

// Length in bytes of the white-space character at the beginning of `text`; 0 if there is none.
size_t leading_space(std::string_view text);
// Length in bytes of the first character of `text`, which must not be empty.
size_t leading_character(std::string_view text);

}  // namespace treadle::text
