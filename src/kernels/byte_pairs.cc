#include "kernels/byte_pairs.h"

#include "kernels/isa/each.h"

namespace treadle::kernels {

TREADLE_IN_EACH_ISA(const BytePairKernels& byte_pair_kernels();)

const BytePairKernels& byte_pair_kernels() {
  return TREADLE_OF_ISA(preferred_isa(), byte_pair_kernels)();
}

}  // namespace treadle::kernels
