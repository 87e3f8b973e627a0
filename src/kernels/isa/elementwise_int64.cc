#include "kernels/isa/rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Arithmetic wraps, so signed and unsigned integers share rows where the sign makes no difference.
void add_64_bit_rows(KernelTable& table) {
  add_elementwise_rows<uint64_t>(table, ComputeType::kU64);
  add_elementwise_rows<int64_t>(table, ComputeType::kI64);
  for (ElementwiseOp op : {ElementwiseOp::kAdd, ElementwiseOp::kSub, ElementwiseOp::kMul}) {
    auto& types = table.elementwise[static_cast<int>(op)];
    types[static_cast<int>(ComputeType::kI64)] = types[static_cast<int>(ComputeType::kU64)];
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
