#include "kernels/stacked_rows.h"

#include "kernels/isa/each.h"

namespace treadle::kernels {

TREADLE_IN_EACH_ISA(StackedRowsRun stacked_rows(ComputeType type);)

StackedRowsRun stacked_rows(ComputeType type) {
  return TREADLE_OF_ISA(preferred_isa(), stacked_rows)(type);
}

}  // namespace treadle::kernels
