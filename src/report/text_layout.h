#pragma once
// Text for people, in lines no wider than their terminal.

#include <cstddef>
#include <string>
#include <string_view>

namespace treadle::report {

struct TextOptions {
  size_t width = 100;  // columns; fewer than kLeastWidth count as kLeastWidth
  bool utf8 = true;    // false: ASCII alone, names of the model aside
  bool all = false;    // whole lists, whatever their length
};
inline constexpr size_t kLeastWidth = 40;

// Columns on a terminal; a code point counts as one.
size_t columns_of(std::string_view text);
// A path of at most `most` columns: the middle is left out, from a '/' on if one is near.
std::string shortened(std::string_view path, size_t most, bool utf8);
// The first `most` columns of a text, with a mark where something is missing.
std::string cut_off(std::string_view text, size_t most, bool utf8);
// `share` of a bar of `columns` columns, and spaces up to its end.
std::string bar(double share, size_t columns, bool utf8);
// "57 us", with two or three digits.
std::string duration_text(double ns);
// "44 %", at least 0.
std::string percent_text(double share);

// `label` and then `text`, whose further lines begin below its first word. A word that is longer than a line is a path,
// and loses its middle. Ends with a newline.
std::string wrapped(std::string_view label, std::string_view text, const TextOptions& options);

}  // namespace treadle::report
