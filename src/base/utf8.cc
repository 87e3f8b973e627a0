#include "base/utf8.h"

#include <cstdint>
#include <cstring>

namespace treadle {

namespace {

bool is_ascii(std::string_view text) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  const auto word_at = [&](size_t i) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    return word;
  };
  uint64_t seen = 0;
  if (text.size() >= 8) {
    for (size_t i = 0; i + 8 < text.size(); i += 8) seen |= word_at(i);
    seen |= word_at(text.size() - 8);
  } else {
    for (const char c : text) seen |= static_cast<unsigned char>(c);
  }
  return (seen & kHighBits) == 0;
}

}  // namespace

size_t utf8_length(std::string_view text) {
  const auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = at(0);
  if (first < 0x80) return 1;
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  const bool overlong = (first == 0xe0 && at(1) < 0xa0) || (first == 0xf0 && at(1) < 0x90);
  // Surrogates, or beyond the last code point
  const bool beyond = (first == 0xed && at(1) > 0x9f) || (first == 0xf4 && at(1) > 0x8f);
  return overlong || beyond ? 0 : length;
}

bool is_utf8(std::string_view text) {
  if (is_ascii(text)) return true;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace treadle
