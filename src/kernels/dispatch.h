#pragma once
// The kernels of the instruction set in use. Sources in isa/ are compiled once per instruction set; each instruction
// set has a table of its kernels.

#include "base/cpu.h"
#include "kernels/table.h"

namespace treadle::kernels {

struct KernelTable;  // isa/tables.h

// Looked up at preparation, not in each run.
const KernelTable& kernels();             // of active_isa()
const KernelTable& kernels_for(Isa isa);  // one of usable_isas()

// Makes prepare functions of the calling thread choose another instruction set than active_isa(). For tests and
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

// The instruction set that prepare functions choose: active_isa(), or the calling thread's ScopedIsa.
Isa preferred_isa();

const ElementwiseRows& elementwise_rows(ElementwiseOp op, ComputeType type);

}  // namespace treadle::kernels
