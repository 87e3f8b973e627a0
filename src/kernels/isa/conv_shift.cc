// Convolutions of floats by shifted rows of the input (conv_shift.h).

#include "kernels/isa/conv_shift.h"

#include "kernels/isa/conv_methods.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template void prepare_shift<float>(ConvPlan&);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
