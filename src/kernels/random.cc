#include "kernels/random.h"

#include "kernels/dispatch.h"

namespace treadle::kernels {

namespace baseline {
const RandomKernels& random_kernels();
}
#if defined(TREADLE_HAS_X86_KERNELS)
namespace avx2 {
const RandomKernels& random_kernels();
}
namespace avx512 {
const RandomKernels& random_kernels();
}
#endif

const RandomKernels& random_kernels() {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::random_kernels();
    case Isa::kAvx2:
      return avx2::random_kernels();
#endif
    default:
      return baseline::random_kernels();
  }
}

}  // namespace treadle::kernels
