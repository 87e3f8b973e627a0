#pragma once

#include <functional>

#include "type/tensor.h"

namespace treadle {

// A tensor of the same type, sizes and contents, in memory that everybody shares who asks for such a tensor; nobody may
// write to it, and it goes with the last of them. Small tensors, texts, and what lies in a shared range
// (base/shared_range.h) stay as they are.
Tensor shared(const Tensor& tensor);

// What `make()` gives, a tensor of this type and these sizes with the contents of `source`, or what it gave before of
// the same place: where that lies in a shared range, nothing is read, nor copied, while somebody has the tensor.
Result<Tensor> shared_copy(ElementType type, const Dims& dims, std::string_view source,
                           const std::function<Result<Tensor>()>& make);

}  // namespace treadle
