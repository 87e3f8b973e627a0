#include "kernels/dispatch.h"

#include "base/status.h"
#include "kernels/isa/each.h"
#include "kernels/isa/tables.h"

namespace treadle::kernels {

namespace {

constexpr int kNone = -1;
thread_local int scoped_isa = kNone;

}  // namespace

const KernelTable& kernels_for(Isa isa) {
  TREADLE_ASSERT(isa <= widest_isa());
  return TREADLE_OF_ISA(isa, kernel_table)();
}

Isa preferred_isa() {
  return scoped_isa == kNone ? active_isa() : static_cast<Isa>(scoped_isa);
}

const KernelTable& kernels() {
  return kernels_for(preferred_isa());
}

ScopedIsa::ScopedIsa(Isa isa) : before_(scoped_isa) {
  TREADLE_ASSERT(isa <= widest_isa());
  scoped_isa = static_cast<int>(isa);
}

ScopedIsa::~ScopedIsa() {
  scoped_isa = before_;
}

const ElementwiseRows& elementwise_rows(ElementwiseOp op, ComputeType type) {
  return kernels().elementwise[static_cast<int>(op)][static_cast<int>(type)];
}

}  // namespace treadle::kernels
