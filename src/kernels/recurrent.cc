#include "kernels/recurrent.h"

#include "kernels/dispatch.h"

namespace treadle::kernels {

namespace baseline {
const RecurrentRows& recurrent_rows(ComputeType type);
}
#if defined(TREADLE_HAS_X86_KERNELS)
namespace avx2 {
const RecurrentRows& recurrent_rows(ComputeType type);
}
namespace avx512 {
const RecurrentRows& recurrent_rows(ComputeType type);
}
#endif

const RecurrentRows& recurrent_rows(ComputeType type) {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::recurrent_rows(type);
    case Isa::kAvx2:
      return avx2::recurrent_rows(type);
#endif
    default:
      return baseline::recurrent_rows(type);
  }
}

}  // namespace treadle::kernels
