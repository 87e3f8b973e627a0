#pragma once
// Tensor -> TensorProto.

#include "base/arena.h"
#include "type/tensor.h"
#include "wire/onnx.h"

namespace treadle::model {

// Numbers as raw data, a view of the tensor's own memory where elements are whole bytes; `arena` gets the rest.
wire::TensorProto write_tensor(const Tensor& tensor, std::string_view name, Arena& arena);

}  // namespace treadle::model
