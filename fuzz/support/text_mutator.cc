#include "fuzz/support/text_mutator.h"

#include <cstring>
#include <string>
#include <vector>

#include "fuzz/support/texts.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace treadle::fuzz {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

// Words, runs of spaces, and single signs.
std::vector<std::string_view> tokens_of(std::string_view text) {
  std::vector<std::string_view> tokens;
  while (!text.empty()) {
    size_t length = 1;
    if (is_word(text[0])) {
      while (length < text.size() && is_word(text[length])) ++length;
    } else if (text[0] == ' ') {
      while (length < text.size() && text[length] == ' ') ++length;
    }
    tokens.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return tokens;
}

std::string_view new_token(Random& random) {
  const Vocabulary& words = vocabulary();
  switch (random.below(4)) {
    case 0:
      return random.pick(words.operators);
    case 1:
      return random.pick(words.attributes);
    default:
      return random.pick(text_tokens());
  }
}

}  // namespace

size_t mutate_text(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  Random random(seed);
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string_view> tokens = tokens_of(text);
  const auto place = [&] { return tokens.begin() + static_cast<std::ptrdiff_t>(random.below(tokens.size())); };
  do {
    if (tokens.empty() || random.one_in(4)) {
      const std::string_view token = tokens.empty() || random.one_in(2) ? new_token(random) : *place();
      tokens.insert(tokens.empty() ? tokens.begin() : place(), token);
    } else if (random.one_in(3)) {
      tokens.erase(place());
    } else if (random.one_in(2)) {
      std::swap(*place(), *place());
    } else if (random.one_in(4)) {
      const auto first = place();
      const auto length = static_cast<std::ptrdiff_t>(random.below(static_cast<size_t>(tokens.end() - first)));
      const std::vector<std::string_view> piece(first, first + length);
      tokens.insert(place(), piece.begin(), piece.end());
    } else {
      *place() = new_token(random);
    }
  } while (!random.one_in(3));
  std::string changed;
  for (const std::string_view token : tokens) changed += token;
  if (changed.size() > max_size) return LLVMFuzzerMutate(data, size, max_size);
  std::memcpy(data, changed.data(), changed.size());
  return changed.size();
}

}  // namespace treadle::fuzz
