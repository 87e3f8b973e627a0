#pragma once
// The kernels of the instruction set in use. Sources in isa/ are compiled once per instruction set; each instruction
// set has a table of its kernels.

#include "base/cpu.h"
#include "base/scoped_choice.h"
#include "kernels/table.h"

namespace treadle::kernels {

struct KernelTable;  // isa/tables.h

// Looked up at preparation, not in each run.
const KernelTable& kernels();             // of active_isa()
const KernelTable& kernels_for(Isa isa);  // one of usable_isas()

struct IsaChoice {
  using Value = Isa;
  static Isa of_process() { return active_isa(); }
};
// Makes prepare functions of the calling thread choose this one of usable_isas(). For tests and benchmarks.
using ScopedIsa = ScopedChoice<IsaChoice>;

// The instruction set that prepare functions choose: active_isa(), or the calling thread's ScopedIsa.
Isa preferred_isa();

const ElementwiseRows& elementwise_rows(ElementwiseOp op, ComputeType type);

}  // namespace treadle::kernels
