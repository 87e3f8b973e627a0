#pragma once
// Tensors for code that has no way to fail.

#include "type/tensor.h"

namespace treadle {

// As Tensor::allocate. Throws std::bad_alloc where that gives an error.
Tensor make_tensor(ElementType type, Dims dims);

// Elements [begin, end) along axis 0, without that axis or with it, in the same memory.
Tensor part_of(const Tensor& whole, int64_t begin, int64_t end, bool keeps_axis);

}  // namespace treadle
