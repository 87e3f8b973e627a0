#include "kernels/random.h"

#include "kernels/isa/each.h"

namespace treadle::kernels {

TREADLE_IN_EACH_ISA(const RandomKernels& random_kernels();)

const RandomKernels& random_kernels() {
  return TREADLE_OF_ISA(preferred_isa(), random_kernels)();
}

}  // namespace treadle::kernels
