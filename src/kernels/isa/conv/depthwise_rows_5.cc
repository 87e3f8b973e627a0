// Depthwise convolutions by rows of 5 taps (depthwise_rows.h).

#include "kernels/isa/conv/depthwise_rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template ConvRun depthwise_rows_for<5>(int64_t down, int64_t across);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
