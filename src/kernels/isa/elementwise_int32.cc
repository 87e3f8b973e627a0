#include "kernels/isa/rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Arithmetic wraps, so signed rows are the unsigned ones wherever the sign makes no difference.
void add_32_bit_rows(KernelTable& table) {
  add_elementwise_rows<uint32_t>(table, ComputeType::kU32);
  add_elementwise_rows<int32_t>(table, ComputeType::kI32);
  for (ElementwiseOp op : {ElementwiseOp::kAdd, ElementwiseOp::kSub, ElementwiseOp::kMul}) {
    auto& types = table.elementwise[static_cast<int>(op)];
    types[static_cast<int>(ComputeType::kI32)] = types[static_cast<int>(ComputeType::kU32)];
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
