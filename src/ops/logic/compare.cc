// Comparisons; the result is bool.

#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

namespace {

Status prepare_is_inf(PrepareContext& ctx) {
  const auto& a = ctx.attributes();
  return prepare_elementwise(
      ctx, kernels::ElementwiseOp::kIsInf,
      {.alpha = a.get_int("detect_negative") != 0 ? 1.0 : 0.0, .beta = a.get_int("detect_positive") != 0 ? 1.0 : 0.0});
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Greater, "") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("C", "T1")
      .optional("axis", ir::AttributeKind::kInt)
      .attr("broadcast", 0)
      .type("T", types::kFloats)
      .type("T1", types::kBools);
  op.since(7).drop_attr("axis").drop_attr("broadcast");
  op.since(9).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  op.infer(infer_comparison)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kGreater>)
      .strided_inputs({0, 1})
      .batch(BatchRule::kElementwise);
}

TREADLE_OP(GreaterOrEqual, "") {
  op.since(12).in("A", "T").in("B", "T").out("C", "T1").type("T", types::kNumeric).type("T1", types::kBools);
  op.since(16).type("T", types::kNumericBf16);
  op.infer(infer_comparison)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kGreaterOrEqual>)
      .strided_inputs({0, 1})
      .batch(BatchRule::kElementwise);
}

TREADLE_OP(IsInf, "") {
  op.since(10)
      .in("X", "T1")
      .out("Y", "T2")
      .attr("detect_negative", 1)
      .attr("detect_positive", 1)
      .type("T1", types::kFloats32)
      .type("T2", types::kBools);
  op.since(20).type("T1", tensors(ElementType::kFloat, ElementType::kFloat16, ElementType::kDouble,
                                  ElementType::kBfloat16, ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz,
                                  ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz));
  op.infer(infer_predicate).prepare(prepare_is_inf).strided_inputs({0}).batch(BatchRule::kElementwise);
}

TREADLE_OP(IsNaN, "") {
  op.since(9).in("X", "T1").out("Y", "T2").type("T1", types::kFloats).type("T2", types::kBools);
  op.since(13).type("T1", types::kFloatsBf16);
  op.since(20).type("T1", tensors(ElementType::kFloat, ElementType::kFloat16, ElementType::kDouble,
                                  ElementType::kBfloat16, ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz,
                                  ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz));
  op.infer(infer_predicate)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kIsNaN>)
      .strided_inputs({0})
      .batch(BatchRule::kElementwise);
}

TREADLE_OP(Less, "") {
  op.since(1)
      .in("A", "T")
      .in("B", "T")
      .out("C", "T1")
      .optional("axis", ir::AttributeKind::kInt)
      .attr("broadcast", 0)
      .type("T", types::kFloats)
      .type("T1", types::kBools);
  op.since(7).drop_attr("axis").drop_attr("broadcast");
  op.since(9).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  op.infer(infer_comparison)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kLess>)
      .strided_inputs({0, 1})
      .batch(BatchRule::kElementwise);
}

TREADLE_OP(LessOrEqual, "") {
  op.since(12).in("A", "T").in("B", "T").out("C", "T1").type("T", types::kNumeric).type("T1", types::kBools);
  op.since(16).type("T", types::kNumericBf16);
  op.infer(infer_comparison)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kLessOrEqual>)
      .strided_inputs({0, 1})
      .batch(BatchRule::kElementwise);
}
