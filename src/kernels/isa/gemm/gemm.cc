// Matrix products of 32- and 64-bit elements, by their type (prepare.h).

#include "kernels/isa/entry.h"
#include "kernels/isa/gemm/types.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape) {
  switch (type) {
    case ComputeType::kF64:
      return prepare_f64_gemm(type, shape);
    case ComputeType::kI32:
    case ComputeType::kU32:
      return prepare_32_bit_gemm(type, shape);
    case ComputeType::kI64:
    case ComputeType::kU64:
      return prepare_64_bit_gemm(type, shape);
    default:
      return prepare_f32_gemm(type, shape);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
