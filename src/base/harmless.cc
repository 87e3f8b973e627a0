#include "base/harmless.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace treadle {

namespace {

// `character`: valid UTF-8.
uint32_t code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7fU >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3fU);
  return code;
}

// Controls, separators of lines, and marks of direction.
bool is_obeyed(uint32_t code) {
  return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x61c || code == 0x200e || code == 0x200f ||
         (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) || code == 0xfeff;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
}

std::string escaped(std::string_view text, std::string_view kept) {
  if (is_ascii(text)) return std::string(text);
  std::string result;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    text.remove_prefix(character.size());
    const auto byte = static_cast<unsigned char>(character[0]);
    if (length == 0 || (byte < 0x80 && is_obeyed(byte) && kept.find(character[0]) == std::string_view::npos)) {
      result += fmt::format("\\x{:02x}", byte);
    } else if (byte >= 0x80 && is_obeyed(code_point(character))) {
      result += fmt::format("\\u{:04x}", code_point(character));
    } else {
      result += character;
    }
  }
  return result;
}

}  // namespace

std::string harmless(std::string_view text) {
  return escaped(text, "");
}

bool is_harmless(std::string_view text) {
  return is_ascii(text) || harmless(text) == text;
}

std::string harmless_lines(std::string_view text) {
  return escaped(text, "\n\t");
}

}  // namespace treadle
