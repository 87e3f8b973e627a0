#pragma once
// Tensors for code that cannot return an error.

#include "type/tensor.h"

namespace treadle {

// As Tensor::allocate, but throws std::bad_alloc.
Tensor make_tensor(ElementType type, Dims dims);

// Elements [begin, end) along axis 0, as a view. `keeps_axis`: whether the result has axis 0.
Tensor part_of(const Tensor& whole, int64_t begin, int64_t end, bool keeps_axis);

}  // namespace treadle
