// Convolutions of doubles by shifted rows of the input (conv_shift.h).

#include "kernels/isa/conv_methods.h"
#include "kernels/isa/conv_shift.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template void prepare_shift<double>(ConvPlan&);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
