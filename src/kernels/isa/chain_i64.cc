#include "kernels/isa/chain_steps.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

ChainForms i64_operation(ElementwiseOp op, ChainShape shape) {
  return operation_forms<int64_t>(op, shape);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
