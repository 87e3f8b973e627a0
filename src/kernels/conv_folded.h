#pragma once
// Convolution with constant weights that fold (kernels/fold.h) along the one axis on which the kernel is longer than 1.

#include "kernels/conv.h"
#include "kernels/dispatch.h"
#include "kernels/fold.h"

namespace treadle::kernels {

// may_fold: whether weights of these sizes are worth a try. fold_weights: the try.
bool may_fold(const ConvShape& shape);
Fold fold_weights(ComputeType type, const ConvShape& shape, const void* weights);

// Whether folding takes less time than a plain convolution of these sizes, or was asked for (ScopedConvMethod).
bool pays(const Fold& fold, const ConvShape& shape);

// Turns a prepared plan into one that folds. make_folded_table makes its table; its weights are packed in the usual
// way.
void fold_conv(ConvPlan& plan, const Fold& fold);
void make_folded_table(const ConvPlan& plan, const Fold& fold, void* table);

}  // namespace treadle::kernels
