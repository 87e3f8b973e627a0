#pragma once

#include <functional>

#include "type/tensor.h"

namespace treadle {

// A tensor of the same type, sizes and contents, in memory that is shared with all tensors from this function that have
// equal contents. The memory must not be written to. It is freed with the last of these tensors. Small tensors, texts,
// and tensors in a shared range (base/shared_range.h) are returned as they are.
Tensor shared(const Tensor& tensor);

// The tensor that `make()` returns: one of this type and sizes, with the contents of `source`. If `source` lies in a
// shared range and a tensor made from the same place is still alive, that tensor is returned, and nothing is read or
// copied.
Result<Tensor> shared_copy(ElementType type, const Dims& dims, std::string_view source,
                           const std::function<Result<Tensor>()>& make);

}  // namespace treadle
