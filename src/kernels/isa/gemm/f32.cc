// Products of floats.

#include "kernels/isa/gemm/prepare.h"
#include "kernels/isa/gemm/types.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template TileFunction<float> own_tile<float>(const TileChoice&);

GemmPlan prepare_f32_gemm(ComputeType type, const GemmShape& shape) {
  GemmPlan plan = prepare<float>(type, shape);
  if (shape.b_packed && shape.n > kGemmDotColumns) {
    if (shape.b_half) {
      use_half_panels(plan);
    } else if (shape.b_bytes) {
      use_byte_panels(plan);
    }
  }
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
