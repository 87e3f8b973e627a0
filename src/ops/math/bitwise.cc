// Bits of integers.

#include "op/elementwise.h"
#include "op/op_def.h"

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
  op.infer(infer_broadcast).prepare(prepare_bit_shift).strided_inputs({0, 1}).elementwise();
}

TREADLE_OP(BitwiseAnd, "") {
  op.since(18).in("A", "T").in("B", "T").out("C", "T").type("T", types::kIntegers);
  op.infer(infer_broadcast)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kBitwiseAnd>)
      .strided_inputs({0, 1})
      .elementwise();
}

TREADLE_OP(BitwiseNot, "") {
  op.since(18).in("X", "T").out("Y", "T").type("T", types::kIntegers);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kBitwiseNot>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(BitwiseOr, "") {
  op.since(18).in("A", "T").in("B", "T").out("C", "T").type("T", types::kIntegers);
  op.infer(infer_broadcast)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kBitwiseOr>)
      .strided_inputs({0, 1})
      .elementwise();
}

TREADLE_OP(BitwiseXor, "") {
  op.since(18).in("A", "T").in("B", "T").out("C", "T").type("T", types::kIntegers);
  op.infer(infer_broadcast)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kBitwiseXor>)
      .strided_inputs({0, 1})
      .elementwise();
}
