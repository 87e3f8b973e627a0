// Comparisons; the result is bool.

#include "op/elementwise_records.h"

namespace treadle {

namespace {

constexpr TypeSet kFloatsDownTo8Bits = tensors(
    ElementType::kFloat, ElementType::kFloat16, ElementType::kDouble, ElementType::kBfloat16,
    ElementType::kFloat8e4m3fn, ElementType::kFloat8e4m3fnuz, ElementType::kFloat8e5m2, ElementType::kFloat8e5m2fnuz);

// Symbolic contents of comparisons: 1, 0 or unknown.
Dim is_less(const Dim& a, const Dim& b) {
  if ((b - a).lower_bound().value_or(0) > 0) return int64_t{1};
  return (a - b).lower_bound().value_or(-1) >= 0 ? Dim(int64_t{0}) : Dim();
}
Dim is_less_or_equal(const Dim& a, const Dim& b) {
  if ((b - a).lower_bound().value_or(-1) >= 0) return int64_t{1};
  return (a - b).lower_bound().value_or(0) > 0 ? Dim(int64_t{0}) : Dim();
}
Dim is_greater(const Dim& a, const Dim& b) {
  return is_less(b, a);
}
Dim is_greater_or_equal(const Dim& a, const Dim& b) {
  return is_less_or_equal(b, a);
}

template <DimFn kFn>
Status infer_order(InferContext& ctx) {
  TREADLE_TRY(infer_comparison(ctx));
  infer_symbols(ctx, kFn);
  return {};
}

Status prepare_is_inf(PrepareContext& ctx) {
  const auto& a = ctx.attributes();
  return prepare_elementwise(
      ctx, kernels::ElementwiseOp::kIsInf,
      {.alpha = a.get_int("detect_negative") != 0 ? 1.0 : 0.0, .beta = a.get_int("detect_positive") != 0 ? 1.0 : 0.0});
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Greater, "") {
  predicate_from_1_to_7(op, types::kFloats);
  op.since(9).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  binary<kernels::ElementwiseOp::kGreater>(op, infer_order<is_greater>);
}

TREADLE_OP(GreaterOrEqual, "") {
  op.since(12).in("A", "T").in("B", "T").out("C", "T1").type("T", types::kNumeric).type("T1", types::kBools);
  op.since(16).type("T", types::kNumericBf16);
  binary<kernels::ElementwiseOp::kGreaterOrEqual>(op, infer_order<is_greater_or_equal>);
}

TREADLE_OP(IsInf, "") {
  op.since(10)
      .in("X", "T1")
      .out("Y", "T2")
      .attr("detect_negative", 1)
      .attr("detect_positive", 1)
      .type("T1", types::kFloats32)
      .type("T2", types::kBools);
  op.since(20).type("T1", kFloatsDownTo8Bits);
  unary(op, prepare_is_inf, infer_predicate);
}

TREADLE_OP(IsNaN, "") {
  op.since(9).in("X", "T1").out("Y", "T2").type("T1", types::kFloats).type("T2", types::kBools);
  op.since(13).type("T1", types::kFloatsBf16);
  op.since(20).type("T1", kFloatsDownTo8Bits);
  unary<kernels::ElementwiseOp::kIsNaN>(op, infer_predicate);
}

TREADLE_OP(Less, "") {
  predicate_from_1_to_7(op, types::kFloats);
  op.since(9).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  binary<kernels::ElementwiseOp::kLess>(op, infer_order<is_less>);
}

TREADLE_OP(LessOrEqual, "") {
  op.since(12).in("A", "T").in("B", "T").out("C", "T1").type("T", types::kNumeric).type("T1", types::kBools);
  op.since(16).type("T", types::kNumericBf16);
  binary<kernels::ElementwiseOp::kLessOrEqual>(op, infer_order<is_less_or_equal>);
}
