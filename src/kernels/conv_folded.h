#pragma once
// Convolution with constant weights that fold (kernels/fold.h) along the one axis on which the kernel is longer than 1.

#include "kernels/conv.h"
#include "kernels/dispatch.h"
#include "kernels/fold.h"

namespace treadle::kernels {

// Whether weights of these sizes are worth a look, and the look.
bool may_fold(const ConvShape& shape);
Fold fold_weights(ComputeType type, const ConvShape& shape, const void* weights);

// Whether folding takes less time than a plain convolution of these sizes, or is asked for (wanted_conv_method).
bool pays(const Fold& fold, const ConvShape& shape);

// Makes a prepared plan one that folds. Its table is made by make_folded_table, its weights are packed as ever.
void fold_conv(ConvPlan& plan, const Fold& fold);
void make_folded_table(const ConvPlan& plan, const Fold& fold, void* table);

}  // namespace treadle::kernels
