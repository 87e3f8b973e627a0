#pragma once
// Tensors for code that has no way to fail.

#include "type/tensor.h"

namespace treadle {

// As Tensor::allocate. Throws std::bad_alloc where that gives an error.
Tensor make_tensor(ElementType type, Dims dims);

}  // namespace treadle
