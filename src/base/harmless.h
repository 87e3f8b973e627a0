#pragma once
// Texts of models for people. A name in a model may hold anything: sequences that terminals obey, line breaks, marks
// that turn the direction of what follows, bytes that are no text. People see these as escapes: "\x1b", "\u202e".

#include <string>
#include <string_view>

namespace treadle {

std::string harmless(std::string_view text);
bool is_harmless(std::string_view text);  // whether harmless() leaves it as it is
// The same for a text of several lines: line breaks and tabs stay.
std::string harmless_lines(std::string_view text);

}  // namespace treadle
