// Functions of one number: rounding, roots, exponentials, sign.

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
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs").type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  op.infer(infer_abs).prepare(prepare_elementwise<kernels::ElementwiseOp::kAbs>).strided_inputs({0}).elementwise();
}

TREADLE_OP(Ceil, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_rounding<rounded_up>)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kCeil>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Exp, "") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kExp>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Floor, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_rounding<rounded_down>)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kFloor>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Log, "") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kLog>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Neg, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs").type("T", types::kSigned);
  op.since(13).type("T", types::kSignedBf16);
  op.infer(infer_neg).prepare(prepare_elementwise<kernels::ElementwiseOp::kNeg>).strided_inputs({0}).elementwise();
}

TREADLE_OP(Reciprocal, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kReciprocal>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Round, "") {
  op.since(11).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kRound>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Sign, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kSign>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Sqrt, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kSqrt>)
      .strided_inputs({0})
      .elementwise();
}
