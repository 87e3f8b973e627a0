// Functions of one number: rounding, roots, exponentials, sign.

#include "op/elementwise_records.h"
#include "op/small_contents.h"
#include "type/dim_fractions.h"

namespace treadle {

namespace {

Status infer_neg(InferContext& ctx) {
  TREADLE_TRY(infer_like_input(ctx));
  if (!wants_small_symbols(ctx)) return {};
  if (std::optional<Shape> dims = small_dims(ctx, 0)) {
    for (Dim& d : *dims) d = Dim(int64_t{0}) - d;
    ctx.set_output_symbols(0, std::move(*dims));
  }
  return {};
}

Status infer_abs(InferContext& ctx) {
  TREADLE_TRY(infer_like_input(ctx));
  if (!wants_small_symbols(ctx)) return {};
  if (std::optional<Shape> dims = small_dims(ctx, 0)) {
    for (Dim& d : *dims) d = max(d, Dim(int64_t{0}) - d);
    ctx.set_output_symbols(0, std::move(*dims));
  }
  return {};
}

template <Dim (*kRounded)(const Dim&)>
Status infer_rounding(InferContext& ctx) {
  TREADLE_TRY(infer_like_input(ctx));
  if (!wants_small_reals(ctx) || ctx.value(0)) return {};
  if (std::optional<Shape> reals = small_reals(ctx, 0)) {
    for (Dim& d : *reals) d = kRounded(d);
    ctx.set_output_symbols(0, std::move(*reals));
  }
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Abs, "") {
  unary_from_1_to_6(op).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  unary<kernels::ElementwiseOp::kAbs>(op, infer_abs);
}

TREADLE_OP(Ceil, "") {
  unary_from_1_to_6(op);
  op.since(13).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kCeil>(op, infer_rounding<rounded_up>);
}

TREADLE_OP(Exp, "") {
  unary_from_1_to_6(op, "input", "output");
  op.since(13).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kExp>(op);
}

TREADLE_OP(Floor, "") {
  unary_from_1_to_6(op);
  op.since(13).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kFloor>(op, infer_rounding<rounded_down>);
}

TREADLE_OP(Log, "") {
  unary_from_1_to_6(op, "input", "output");
  op.since(13).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kLog>(op);
}

TREADLE_OP(Neg, "") {
  unary_from_1_to_6(op).type("T", types::kSigned);
  op.since(13).type("T", types::kSignedBf16);
  unary<kernels::ElementwiseOp::kNeg>(op, infer_neg);
}

TREADLE_OP(Reciprocal, "") {
  unary_from_1_to_6(op);
  op.since(13).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kReciprocal>(op);
}

TREADLE_OP(Round, "") {
  op.since(11).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kRound>(op);
}

TREADLE_OP(Sign, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  unary<kernels::ElementwiseOp::kSign>(op);
}

TREADLE_OP(Sqrt, "") {
  unary_from_1_to_6(op);
  op.since(13).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kSqrt>(op);
}
