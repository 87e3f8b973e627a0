#pragma once
// Regular expressions of RE2's syntax, as attributes hold them. Only who includes this header sees RE2
// (cmake/Re2.cmake).

#include <re2/re2.h>

#include <memory>
#include <string_view>

#include "base/status.h"

namespace treadle::text {

using Pattern = std::unique_ptr<re2::RE2>;

// Of several matches at one place `longest` takes the longest one, otherwise the one that the pattern prefers.
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
