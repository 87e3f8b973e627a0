#pragma once
// kernels/conv_folded.h, once per instruction set.

#include "kernels/conv.h"
#include "kernels/fold.h"

#define TREADLE_DECLARE_FOLDED_KERNELS(isa)                                    \
  namespace treadle::kernels::isa {                                            \
  void fold_conv(ConvPlan& plan, const Fold& fold);                            \
  void make_folded_table(const ConvPlan& plan, const Fold& fold, void* table); \
  }

TREADLE_DECLARE_FOLDED_KERNELS(baseline)
#if defined(TREADLE_HAS_X86_KERNELS)
TREADLE_DECLARE_FOLDED_KERNELS(avx2)
TREADLE_DECLARE_FOLDED_KERNELS(avx512)
#endif
