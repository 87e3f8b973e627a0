// Depthwise convolutions of any kernel (conv_depthwise.h).

#include "kernels/isa/conv_depthwise.h"

#include "kernels/isa/conv_methods.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template void prepare_depthwise<float>(ConvPlan&);
template void prepare_depthwise<double>(ConvPlan&);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
