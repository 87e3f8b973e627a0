// Activation functions of one operand.

#include "op/elementwise_records.h"

namespace treadle {

namespace {

Status prepare_gelu(PrepareContext& ctx) {
  const std::string_view approximate = ctx.attributes().get_string("approximate");
  if (approximate == "none") return prepare_elementwise(ctx, kernels::ElementwiseOp::kGeluErf);
  if (approximate == "tanh") return prepare_elementwise(ctx, kernels::ElementwiseOp::kGeluTanh);
  return error(Code::kInvalidModel, "attribute approximate is '{}', expected 'none' or 'tanh'", approximate);
}

Status prepare_hard_sigmoid(PrepareContext& ctx) {
  const auto& a = ctx.attributes();
  return prepare_elementwise(ctx, kernels::ElementwiseOp::kHardSigmoid,
                             {.alpha = a.get_float("alpha"), .beta = a.get_float("beta")});
}

Status prepare_selu(PrepareContext& ctx) {
  const auto& a = ctx.attributes();
  return prepare_elementwise(ctx, kernels::ElementwiseOp::kSelu,
                             {.alpha = a.get_float("alpha"), .beta = a.get_float("gamma")});
}

Status prepare_shrink(PrepareContext& ctx) {
  const auto& a = ctx.attributes();
  return prepare_elementwise(ctx, kernels::ElementwiseOp::kShrink,
                             {.alpha = a.get_float("lambd"), .beta = a.get_float("bias")});
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Celu, "") {
  op.since(12).in("X", "T").out("Y", "T").attr("alpha", 1.0).type("T", types::kFloat32s);
  op.since(28).type("T", types::kFloatsBf16);
  unary(op, prepare_with_alpha<kernels::ElementwiseOp::kCelu>);
}

TREADLE_OP(Elu, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("alpha", 1.0)
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(22).type("T", types::kFloatsBf16);
  unary(op, prepare_with_alpha<kernels::ElementwiseOp::kElu>);
}

TREADLE_OP(Gelu, "") {
  op.since(20).in("X", "T").out("Y", "T").attr("approximate", "none").type("T", types::kFloatsBf16);
  unary(op, prepare_gelu);
}

TREADLE_OP(HardSigmoid, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("alpha", 0.2)
      .attr("beta", 0.5)
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(22).type("T", types::kFloatsBf16);
  unary(op, prepare_hard_sigmoid);
}

TREADLE_OP(HardSwish, "") {
  op.since(14).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kHardSwish>(op);
}

TREADLE_OP(LeakyRelu, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("alpha", 0.01)
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(16).type("T", types::kFloatsBf16);
  unary(op, prepare_with_alpha<kernels::ElementwiseOp::kLeakyRelu>);
}

TREADLE_OP(Mish, "") {
  op.since(18).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kMish>(op);
}

TREADLE_OP(Relu, "") {
  unary_from_1_to_6(op);
  op.since(13).type("T", types::kFloatsBf16);
  op.since(14).type("T", types::kSignedBf16);
  unary<kernels::ElementwiseOp::kRelu>(op);
}

TREADLE_OP(Selu, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("alpha", 1.6732)
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .attr("gamma", 1.0507)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs").attr("alpha", 1.6732632).attr("gamma", 1.050701);
  op.since(22).type("T", types::kFloatsBf16);
  unary(op, prepare_selu);
}

TREADLE_OP(Shrink, "") {
  op.since(9).in("input", "T").out("output", "T").attr("bias", 0.0).attr("lambd", 0.5).type("T", types::kNumeric);
  unary(op, prepare_shrink);
}

TREADLE_OP(Sigmoid, "") {
  unary_from_1_to_6(op);
  op.since(13).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kSigmoid>(op);
}

TREADLE_OP(Softplus, "") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kSoftplus>(op);
}

TREADLE_OP(Softsign, "") {
  op.since(1).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kSoftsign>(op);
}

TREADLE_OP(Swish, "") {
  op.since(24).in("X", "T").out("Y", "T").attr("alpha", 1.0).type("T", types::kFloatsBf16);
  unary(op, prepare_with_alpha<kernels::ElementwiseOp::kSwish>);
}

TREADLE_OP(Tanh, "") {
  unary_from_1_to_6(op, "input", "output");
  op.since(13).type("T", types::kFloatsBf16);
  unary<kernels::ElementwiseOp::kTanh>(op);
}

TREADLE_OP(ThresholdedRelu, "") {
  // An experimental version with the same function
  op.since(1).in("X", "T").out("Y", "T").attr("alpha", 1.0).type("T", types::kFloats);
  op.since(10);
  op.since(22).type("T", types::kFloatsBf16);
  unary(op, prepare_with_alpha<kernels::ElementwiseOp::kThresholdedRelu>);
}
