#pragma once
// kernels/conv_folded.h, once per instruction set.

#include "kernels/conv.h"
#include "kernels/fold.h"
#include "kernels/isa/each.h"

namespace treadle::kernels {

TREADLE_IN_EACH_ISA(void fold_conv(ConvPlan& plan, const Fold& fold);)
TREADLE_IN_EACH_ISA(void make_folded_table(const ConvPlan& plan, const Fold& fold, void* table);)

}  // namespace treadle::kernels
