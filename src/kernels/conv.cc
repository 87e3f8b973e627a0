#include "kernels/conv.h"

#include "kernels/dispatch.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

ConvPlan prepare_conv(ComputeType type, const ConvShape& shape) {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::prepare_conv(type, shape);
    case Isa::kAvx2:
      return avx2::prepare_conv(type, shape);
#endif
    default:
      return baseline::prepare_conv(type, shape);
  }
}

}  // namespace treadle::kernels
