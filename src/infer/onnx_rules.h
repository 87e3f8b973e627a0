#pragma once
// Inference with the results of the onnx package (release 1.23), for comparison.

#include "op/context.h"

namespace treadle {

// Infers by the node's record, except for operators on which onnx concludes less, or refuses more or less.
Status infer_as_onnx(InferContext& context);

}  // namespace treadle
