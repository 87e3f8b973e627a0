// Bits of integers.

#include "op/elementwise_records.h"

namespace treadle {

namespace {

Status prepare_bit_shift(PrepareContext& ctx) {
  const std::string_view direction = ctx.attributes().get_string("direction");
  if (direction == "LEFT") return prepare_elementwise(ctx, kernels::ElementwiseOp::kShiftLeft);
  if (direction == "RIGHT") return prepare_elementwise(ctx, kernels::ElementwiseOp::kShiftRight);
  return error(Code::kInvalidModel, "attribute direction is '{}', expected 'LEFT' or 'RIGHT'", direction);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(BitShift, "") {
  op.since(11)
      .in("X", "T")
      .in("Y", "T")
      .out("Z", "T")
      .required("direction", ir::AttributeKind::kString)
      .type("T", types::kUnsigneds);
  op.since(28).type("T", types::kIntegers);
  binary(op, prepare_bit_shift, infer_broadcast);
}

TREADLE_OP(BitwiseAnd, "") {
  op.since(18).in("A", "T").in("B", "T").out("C", "T").type("T", types::kIntegers);
  binary<kernels::ElementwiseOp::kBitwiseAnd>(op, infer_broadcast);
}

TREADLE_OP(BitwiseNot, "") {
  op.since(18).in("X", "T").out("Y", "T").type("T", types::kIntegers);
  unary<kernels::ElementwiseOp::kBitwiseNot>(op);
}

TREADLE_OP(BitwiseOr, "") {
  op.since(18).in("A", "T").in("B", "T").out("C", "T").type("T", types::kIntegers);
  binary<kernels::ElementwiseOp::kBitwiseOr>(op, infer_broadcast);
}

TREADLE_OP(BitwiseXor, "") {
  op.since(18).in("A", "T").in("B", "T").out("C", "T").type("T", types::kIntegers);
  binary<kernels::ElementwiseOp::kBitwiseXor>(op, infer_broadcast);
}
