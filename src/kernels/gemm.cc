#include "kernels/gemm.h"

#include "kernels/isa/each.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape) {
  return TREADLE_OF_ISA(preferred_isa(), prepare_gemm)(type, shape);
}

}  // namespace treadle::kernels
