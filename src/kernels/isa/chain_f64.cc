#include "kernels/isa/chain_steps.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

ChainForms f64_operation(ElementwiseOp op, ChainShape shape) {
  return operation_forms<double>(op, shape);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
