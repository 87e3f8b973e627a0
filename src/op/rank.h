#pragma once
// The number of dimensions that a list of sizes or axes describes.

#include "op/operands.h"

namespace treadle {

// The length of input i, a list of sizes or axes. Unknown if its size is unknown, or larger than the rank of any
// tensor: a shape of so many sizes would only take memory.
inline Dim dimensions_listed(const InferContext& context, size_t i) {
  constexpr int64_t kMostDimensions = 64;
  const Dim length = length_of(context, i);
  return length.is_known() && length.value() > kMostDimensions ? Dim() : length;
}

}  // namespace treadle
