#include "kernels/recurrent.h"

#include "kernels/isa/each.h"

namespace treadle::kernels {

TREADLE_IN_EACH_ISA(const RecurrentRows& recurrent_rows(ComputeType type);)

const RecurrentRows& recurrent_rows(ComputeType type) {
  return TREADLE_OF_ISA(preferred_isa(), recurrent_rows)(type);
}

}  // namespace treadle::kernels
