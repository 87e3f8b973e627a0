// Products of doubles.

#include "kernels/isa/gemm/prepare.h"
#include "kernels/isa/gemm/types.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

GemmPlan prepare_f64_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted) {
  return prepare<double>(type, shape, wanted);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
