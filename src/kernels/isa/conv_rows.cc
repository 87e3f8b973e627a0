// Convolutions as products of copied windows (conv_rows.h).

#include "kernels/isa/conv_rows.h"

#include "kernels/isa/conv_methods.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template void prepare_rows<float>(ConvPlan&);
template void prepare_rows<double>(ConvPlan&);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
