#include "kernels/qgemm.h"

#include "kernels/isa/each.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

QGemmPlan prepare_qgemm(const QGemmShape& shape) {
  return TREADLE_OF_ISA(preferred_isa(), prepare_qgemm)(shape);
}

}  // namespace treadle::kernels
