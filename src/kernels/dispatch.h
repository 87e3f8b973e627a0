#pragma once
// The kernels of the instruction set in use. Sources in isa/ are compiled once per instruction set; each provides its
// table.

#include "base/cpu.h"
#include "kernels/table.h"

namespace treadle::kernels {

struct KernelTable;  // isa/tables.h

// Looked up while preparing, not per run.
const KernelTable& kernels();             // of active_isa()
const KernelTable& kernels_for(Isa isa);  // one of usable_isas()

// Makes prepare functions of the calling thread choose another instruction set than active_isa(), for tests and
// benchmarks.
class ScopedIsa {
 public:
  explicit ScopedIsa(Isa isa);
  ~ScopedIsa();
  ScopedIsa(const ScopedIsa&) = delete;
  ScopedIsa& operator=(const ScopedIsa&) = delete;

 private:
  int before_;
};

// What prepare functions choose by: active_isa(), or the calling thread's ScopedIsa.
Isa preferred_isa();

const ElementwiseRows& elementwise_rows(ElementwiseOp op, ComputeType type);

}  // namespace treadle::kernels
