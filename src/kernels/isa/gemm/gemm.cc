// Matrix products of 32- and 64-bit elements, by their type.

#include "kernels/isa/entry.h"
#include "kernels/isa/gemm/types.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

std::vector<std::string_view> gemm_walks() {
  return f32_walks();
}

GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted) {
  switch (type) {
    case ComputeType::kF64:
      return prepare_f64_gemm(type, shape, wanted);
    case ComputeType::kI32:
    case ComputeType::kU32:
      return prepare_32_bit_gemm(type, shape, wanted);
    case ComputeType::kI64:
    case ComputeType::kU64:
      return prepare_64_bit_gemm(type, shape, wanted);
    default:
      return prepare_f32_gemm(type, shape, wanted);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
