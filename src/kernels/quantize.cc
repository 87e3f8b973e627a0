#include "kernels/quantize.h"

#include "kernels/dispatch.h"

namespace treadle::kernels {

namespace baseline {
const QuantizeKernels& quantize_kernels();
}
#if defined(TREADLE_HAS_X86_KERNELS)
namespace avx2 {
const QuantizeKernels& quantize_kernels();
}
namespace avx512 {
const QuantizeKernels& quantize_kernels();
}
#endif

const QuantizeKernels& quantize_kernels() {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::quantize_kernels();
    case Isa::kAvx2:
      return avx2::quantize_kernels();
#endif
    default:
      return baseline::quantize_kernels();
  }
}

}  // namespace treadle::kernels
