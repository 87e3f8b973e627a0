#include "ops/ml/dictionary.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "type/make_tensor.h"

namespace treadle::ml {

namespace {

// A number that is equal for equal floats.
int64_t number_of(double v) {
  return std::bit_cast<int64_t>(std::isnan(v) ? std::nan("") : v + 0.0);
}

int64_t number_at(ElementType type, const void* x, int64_t i) {
  switch (type) {
    case ElementType::kFloat:
      return number_of(static_cast<double>(static_cast<const float*>(x)[i]));
    case ElementType::kDouble:
      return number_of(static_cast<const double*>(x)[i]);
    case ElementType::kInt16:
      return static_cast<const int16_t*>(x)[i];
    case ElementType::kInt32:
      return static_cast<const int32_t*>(x)[i];
    default:
      return static_cast<const int64_t*>(x)[i];
  }
}

}  // namespace

Dictionary::Dictionary(const Tensor& keys) : type_(keys.type()) {
  const int64_t count = keys.element_count();
  if (is_string(type_)) {
    const auto all = keys.span<String>();
    texts_.assign(all.begin(), all.end());
    for (size_t i = 0; i < texts_.size(); ++i) by_text_.emplace(texts_[i], static_cast<int64_t>(i));
    return;
  }
  if (count == 0) return;
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(number_at(type_, keys.raw(), i));
  const auto [least, most] = std::minmax_element(numbers.begin(), numbers.end());
  const uint64_t span = static_cast<uint64_t>(*most) - static_cast<uint64_t>(*least);
  if (span / 4 <= static_cast<uint64_t>(count)) {
    first_ = *least;
    near_.assign(static_cast<size_t>(span) + 1, -1);
    for (size_t i = numbers.size(); i-- > 0;) near_[static_cast<size_t>(numbers[i] - first_)] = static_cast<int64_t>(i);
    return;
  }
  for (size_t i = 0; i < numbers.size(); ++i) by_number_.emplace(numbers[i], static_cast<int64_t>(i));
}

int64_t Dictionary::find(const void* x, int64_t i) const {
  if (is_string(type_)) return find(std::string_view(static_cast<const String*>(x)[i]));
  return find(number_at(type_, x, i));
}

int64_t Dictionary::find(std::string_view text) const {
  const auto found = by_text_.find(text);
  return found == by_text_.end() ? -1 : found->second;
}

int64_t Dictionary::find(int64_t key) const {
  if (!near_.empty()) {
    const uint64_t at = static_cast<uint64_t>(key) - static_cast<uint64_t>(first_);
    return at < near_.size() ? near_[at] : -1;
  }
  const auto found = by_number_.find(key);
  return found == by_number_.end() ? -1 : found->second;
}

Tensor to_tensor(std::span<const std::string> strings) {
  Tensor tensor = make_tensor(ElementType::kString, {static_cast<int64_t>(strings.size())});
  std::copy(strings.begin(), strings.end(), tensor.mutable_data<String>());
  return tensor;
}

}  // namespace treadle::ml
