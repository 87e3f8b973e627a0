// Activation functions of one operand.

#include "op/elementwise.h"
#include "op/op_def.h"

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
  op.infer(infer_like_input)
      .prepare(prepare_with_alpha<kernels::ElementwiseOp::kCelu>)
      .strided_inputs({0})
      .elementwise();
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
  op.infer(infer_like_input)
      .prepare(prepare_with_alpha<kernels::ElementwiseOp::kElu>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Gelu, "") {
  op.since(20).in("X", "T").out("Y", "T").attr("approximate", "none").type("T", types::kFloatsBf16);
  op.infer(infer_like_input).prepare(prepare_gelu).strided_inputs({0}).elementwise();
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
  op.infer(infer_like_input).prepare(prepare_hard_sigmoid).strided_inputs({0}).elementwise();
}

TREADLE_OP(HardSwish, "") {
  op.since(14).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kHardSwish>)
      .strided_inputs({0})
      .elementwise();
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
  op.infer(infer_like_input)
      .prepare(prepare_with_alpha<kernels::ElementwiseOp::kLeakyRelu>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Mish, "") {
  op.since(18).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kMish>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Relu, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.since(14).type("T", types::kSignedBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kRelu>)
      .strided_inputs({0})
      .elementwise();
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
  op.infer(infer_like_input).prepare(prepare_selu).strided_inputs({0}).elementwise();
}

TREADLE_OP(Shrink, "") {
  op.since(9).in("input", "T").out("output", "T").attr("bias", 0.0).attr("lambd", 0.5).type("T", types::kNumeric);
  op.infer(infer_like_input).prepare(prepare_shrink).strided_inputs({0}).elementwise();
}

TREADLE_OP(Sigmoid, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kSigmoid>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Softplus, "") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kSoftplus>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Softsign, "") {
  op.since(1).in("input", "T").out("output", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kSoftsign>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Swish, "") {
  op.since(24).in("X", "T").out("Y", "T").attr("alpha", 1.0).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_with_alpha<kernels::ElementwiseOp::kSwish>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(Tanh, "") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_elementwise<kernels::ElementwiseOp::kTanh>)
      .strided_inputs({0})
      .elementwise();
}

TREADLE_OP(ThresholdedRelu, "") {
  op.since(10).in("X", "T").out("Y", "T").attr("alpha", 1.0).type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_like_input)
      .prepare(prepare_with_alpha<kernels::ElementwiseOp::kThresholdedRelu>)
      .strided_inputs({0})
      .elementwise();
}
