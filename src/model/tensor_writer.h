#pragma once
// Tensor -> TensorProto.

#include "base/arena.h"
#include "type/tensor.h"
#include "wire/onnx.h"

namespace treadle::model {

// Numbers become raw data, as a view of the tensor's memory if elements are whole bytes. Other contents go to `arena`.
wire::TensorProto write_tensor(const Tensor& tensor, std::string_view name, Arena& arena);

}  // namespace treadle::model
