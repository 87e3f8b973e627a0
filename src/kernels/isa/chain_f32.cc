#include "kernels/isa/chain_steps.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

ChainForms f32_operation(ElementwiseOp op, ChainShape shape) {
  return operation_forms<float>(op, shape);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
