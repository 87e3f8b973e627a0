#include "kernels/gemm.h"

#include "kernels/dispatch.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape) {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::prepare_gemm(type, shape);
    case Isa::kAvx2:
      return avx2::prepare_gemm(type, shape);
#endif
    default:
      return baseline::prepare_gemm(type, shape);
  }
}

}  // namespace treadle::kernels
