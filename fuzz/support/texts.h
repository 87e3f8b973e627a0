#pragma once
// Words that models are made of, and the storage of those that a mutator makes up.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/arena.h"
#include "fuzz/support/random.h"

namespace treadle::fuzz {

// What keeps made-up texts, packed numbers and messages while a model refers to them.
class Storage {
 public:
  std::string_view keep(std::string_view text) { return arena_.copy(text); }
  Arena& arena() { return arena_; }

 private:
  Arena arena_;
};

// Names of operators, of attributes, and what attributes that are texts may say; from the operators' records.
struct Vocabulary {
  std::vector<std::string_view> operators, domains, attributes, settings;
};
const Vocabulary& vocabulary();

// What ONNX text is made of besides names.
std::span<const std::string_view> text_tokens();

// Names of sizes and values; few, so that they meet.
std::string_view symbol(Random& random);

}  // namespace treadle::fuzz
