#include "kernels/dispatch.h"

#include "base/status.h"
#include "kernels/isa/each.h"
#include "kernels/isa/tables.h"

namespace treadle::kernels {

const KernelTable& kernels_for(Isa isa) {
  TREADLE_ASSERT(isa <= widest_isa());
  return TREADLE_OF_ISA(isa, kernel_table)();
}

Isa preferred_isa() {
  const Isa isa = ScopedIsa::current();
  TREADLE_ASSERT(isa <= widest_isa());
  return isa;
}

const KernelTable& kernels() {
  return kernels_for(preferred_isa());
}

const ElementwiseRows& elementwise_rows(ElementwiseOp op, ComputeType type) {
  return kernels().elementwise[static_cast<int>(op)][static_cast<int>(type)];
}

}  // namespace treadle::kernels
