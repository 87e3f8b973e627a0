#include "kernels/quantize.h"

#include "kernels/isa/each.h"

namespace treadle::kernels {

TREADLE_IN_EACH_ISA(const QuantizeKernels& quantize_kernels();)

const QuantizeKernels& quantize_kernels() {
  return TREADLE_OF_ISA(preferred_isa(), quantize_kernels)();
}

}  // namespace treadle::kernels
