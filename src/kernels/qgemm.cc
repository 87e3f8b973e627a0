#include "kernels/qgemm.h"

#include "kernels/dispatch.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

QGemmPlan prepare_qgemm(const QGemmShape& shape) {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::prepare_qgemm(shape);
    case Isa::kAvx2:
      return avx2::prepare_qgemm(shape);
#endif
    default:
      return baseline::prepare_qgemm(shape);
  }
}

}  // namespace treadle::kernels
