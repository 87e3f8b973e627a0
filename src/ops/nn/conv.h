#pragma once
// Conv and ConvTranspose once their sizes are known.

#include "kernels/conv.h"
#include "op/context.h"

namespace treadle::nn {

// Sets the kernel for x, weights, bias (inputs 0, 1, 2) and y. Narrow floats are computed in f32. Constant weights are
// packed now, others in every run.
Status prepare_conv(PrepareContext& ctx, const kernels::ConvShape& shape);

}  // namespace treadle::nn
