#pragma once
// Regular expressions in RE2's syntax, as attributes have them. Only files that include this header see RE2
// (cmake/Re2.cmake).

#include <re2/re2.h>

#include <memory>
#include <string_view>

#include "base/status.h"

namespace treadle::text {

using Pattern = std::unique_ptr<re2::RE2>;

// Of several matches at one position, `longest` takes the longest; otherwise the pattern's own preference counts.
inline Result<Pattern> read_pattern(std::string_view text, const char* attribute, bool longest = false) {
  re2::RE2::Options options;
  options.set_log_errors(false);
  options.set_longest_match(longest);
  auto pattern = std::make_unique<re2::RE2>(re2::StringPiece(text.data(), text.size()), options);
  if (pattern->ok()) return pattern;
  return error(Code::kInvalidModel, "attribute {} is '{}', expected a regular expression of RE2: {}", attribute, text,
               pattern->error());
}

}  // namespace treadle::text
