#pragma once
// Conv and ConvTranspose once their sizes are known.

#include "kernels/conv.h"
#include "op/context.h"

namespace treadle::nn {

// What is done to sums before they are stored. Input 3, where there is one, is added to them: it has the sizes and type
// of y, which is f32 or f64.
struct ConvEpilogue {
  kernels::Clamp clamp{-__builtin_inff(), __builtin_inff()};
};

// Sets the kernel for x, weights, bias (inputs 0, 1, 2) and y. Narrow floats are computed in f32. Constant weights are
// packed now, others in every run.
Status prepare_conv(PrepareContext& ctx, const kernels::ConvShape& shape, const ConvEpilogue& epilogue = {});

}  // namespace treadle::nn
