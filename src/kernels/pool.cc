#include "kernels/pool.h"

#include "kernels/dispatch.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

void run_pool(PoolKind kind, ElementType type, const PoolShape& shape, const void* x, void* y, int64_t* indices,
              int64_t begin, int64_t end) {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::run_pool(kind, type, shape, x, y, indices, begin, end);
    case Isa::kAvx2:
      return avx2::run_pool(kind, type, shape, x, y, indices, begin, end);
#endif
    default:
      return baseline::run_pool(kind, type, shape, x, y, indices, begin, end);
  }
}

void run_global_pool(PoolKind kind, ElementType type, int p, int64_t plane, const void* x, void* y, int64_t begin,
                     int64_t end) {
  switch (preferred_isa()) {
#if defined(TREADLE_HAS_X86_KERNELS)
    case Isa::kAvx512:
      return avx512::run_global_pool(kind, type, p, plane, x, y, begin, end);
    case Isa::kAvx2:
      return avx2::run_global_pool(kind, type, p, plane, x, y, begin, end);
#endif
    default:
      return baseline::run_global_pool(kind, type, p, plane, x, y, begin, end);
  }
}

}  // namespace treadle::kernels
