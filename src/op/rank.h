#pragma once
// How many dimensions a list of sizes or axes stands for.

#include "op/operands.h"

namespace treadle {

// Elements of input i, which lists sizes or axes. Unknown when its size is, and when there are more of them than any
// tensor has dimensions: a shape of so many sizes would only take memory.
inline Dim dimensions_listed(const InferContext& context, size_t i) {
  constexpr int64_t kMostDimensions = 64;
  const Dim length = length_of(context, i);
  return length.is_known() && length.value() > kMostDimensions ? Dim() : length;
}

}  // namespace treadle
