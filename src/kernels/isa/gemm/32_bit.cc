// Products of integers of 32 bits, signed or not.

#include "kernels/isa/gemm/prepare.h"
#include "kernels/isa/gemm/types.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

GemmPlan prepare_32_bit_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted) {
  return prepare<uint32_t>(type, shape, wanted);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
