#include "kernels/stacked_rows.h"

#include "kernels/dispatch.h"

namespace treadle::kernels {

namespace baseline {
StackedRowsRun stacked_rows(ComputeType type);
}
#if defined(TREADLE_HAS_X86_KERNELS)
namespace avx2 {
StackedRowsRun stacked_rows(ComputeType type);
}
namespace avx512 {
StackedRowsRun stacked_rows(ComputeType type);
}
#endif

StackedRowsRun stacked_rows(ComputeType type) {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::stacked_rows(type);
    case Isa::kAvx2:
      return avx2::stacked_rows(type);
#endif
    default:
      return baseline::stacked_rows(type);
  }
}

}  // namespace treadle::kernels
