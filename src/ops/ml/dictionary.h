#pragma once
// Maps keys (labels, categories, words) to their positions in a list.

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/attribute.h"
#include "type/tensor.h"

namespace treadle::ml {

// Keys are strings, floats or integers of any width. Floats are compared by value: NaN equals NaN, and -0 equals 0. Of
// equal keys the first counts.
class Dictionary {
 public:
  Dictionary() = default;
  explicit Dictionary(const Tensor& keys);

  ElementType type() const { return type_; }
  // The position of element i of `x`, an array of this type; -1: no such key.
  int64_t find(const void* x, int64_t i) const;
  int64_t find(std::string_view text) const;
  int64_t find(int64_t key) const;

 private:
  ElementType type_ = ElementType::kUndefined;
  std::vector<std::string> texts_;
  std::unordered_map<std::string_view, int64_t> by_text_;  // views of texts_
  std::unordered_map<int64_t, int64_t> by_number_;
  // If integer keys are close together: the position of key first_ + i, or -1.
  int64_t first_ = 0;
  std::vector<int64_t> near_;
};

// An attribute's strings or integers as a 1-D tensor.
Tensor to_tensor(std::span<const std::string> strings);
inline Tensor to_tensor(std::span<const int64_t> integers) {
  return Tensor::of_int64(integers);
}

}  // namespace treadle::ml
