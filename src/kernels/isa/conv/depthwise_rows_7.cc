// Depthwise convolutions by rows of 7 taps (depthwise_rows.h).

#include "kernels/isa/conv/depthwise_rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template ConvRun depthwise_rows_for<7>(int64_t down, int64_t across);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
