#include "kernels/isa/chain_steps.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

ChainForms i32_operation(ElementwiseOp op, ChainShape shape) {
  return operation_forms<int32_t>(op, shape);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
