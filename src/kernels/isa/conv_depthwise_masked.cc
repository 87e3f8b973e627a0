// Depthwise convolutions by masked vectors (conv_depthwise_masked.h).

#include "kernels/isa/conv_depthwise_masked.h"

#include "kernels/isa/conv_methods.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX512F__)

template void prepare_masked<float>(ConvPlan&);
template void prepare_masked<double>(ConvPlan&);

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
