// Prints a dictionary for libFuzzer: names of operators and attributes, from their records, and words of ONNX text.

#include <fmt/format.h>

#include <cstdio>

#include "fuzz/support/texts.h"

int main() {
  const auto print = [](const auto& words) {
    constexpr size_t kLongest = 64;  // libFuzzer's limit
    for (const std::string_view word : words) {
      if (word.empty() || word.size() > kLongest) continue;
      std::string quoted;
      for (const char c : word) quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
      fmt::print("\"{}\"\n", quoted);
    }
  };
  const treadle::fuzz::Vocabulary& words = treadle::fuzz::vocabulary();
  print(words.operators);
  print(words.attributes);
  print(words.settings);
  print(treadle::fuzz::text_tokens());
}
