#include "kernels/byte_pairs.h"

#include "kernels/dispatch.h"

namespace treadle::kernels {

namespace baseline {
const BytePairKernels& byte_pair_kernels();
}
#if defined(TREADLE_HAS_X86_KERNELS)
namespace avx2 {
const BytePairKernels& byte_pair_kernels();
}
namespace avx512 {
const BytePairKernels& byte_pair_kernels();
}
#endif

const BytePairKernels& byte_pair_kernels() {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::byte_pair_kernels();
    case Isa::kAvx2:
      return avx2::byte_pair_kernels();
#endif
    default:
      return baseline::byte_pair_kernels();
  }
}

}  // namespace treadle::kernels
