#pragma once
// Inference as the onnx package (release 1.23) does it, for comparing with it.

#include "op/context.h"

namespace treadle {

// Infers through the node's record but for the operators on which onnx concludes less, refuses more or refuses less.
Status infer_as_onnx(InferContext& context);

}  // namespace treadle
