// implicit_gemm.h for doubles.

#include "kernels/isa/conv/implicit_gemm.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template void prepare_implicit_gemm<double, ImplicitGemmLayout<double>::kByRow>(ConvPlan&);
template void prepare_implicit_gemm<double, ImplicitGemmLayout<double>::kFlat>(ConvPlan&);
template void prepare_implicit_gemm<double, ImplicitGemmLayout<double>::kGathered>(ConvPlan&);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
