// Sums with an activation, as onnxruntime's optimisers write them. They are lowered to single operators, which join
// elementwise groups.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::fused {

namespace {

// Checks a vector that is added along the last axis of input 0.
Status check_bias(const InferContext& ctx, size_t i) {
  const Shape *x = ctx.shape(0), *bias = ctx.shape(i);
  if (!x || !bias) return {};
  if (bias->size() == 1 && !x->empty() && !differ((*bias)[0], x->back())) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected [{}]: the size of the last axis of {}",
               ctx.node.version->inputs[i].name, to_string(*bias), x->empty() ? "" : x->back().to_string(),
               to_string(*x));
}

template <size_t kBias>
Status infer_biased(InferContext& ctx) {
  TREADLE_TRY(check_bias(ctx, kBias));
  return infer_like_input(ctx);
}

ir::Value* biased(LowerContext& ctx, size_t bias) {
  return ctx.has_input(bias) ? ctx.call("Add", {ctx.input(0), ctx.input(bias)}) : ctx.input(0);
}

ir::Value* gelu(LowerContext& ctx, ir::Value* x, const char* approximate) {
  return ctx.call("Gelu", {x}, {ir::Attribute::of("approximate", approximate)});
}

Status lower_bias_gelu(LowerContext& ctx) {
  ctx.set_output(0, gelu(ctx, biased(ctx, 1), "none"));
  return {};
}

Status lower_fast_gelu(LowerContext& ctx) {
  ctx.set_output(0, gelu(ctx, biased(ctx, 1), "tanh"));
  return {};
}

Status lower_quick_gelu(LowerContext& ctx) {
  const float alpha = ctx.attributes().get_float("alpha");
  ctx.set_output(0, ctx.call("Swish", {ctx.input(0)}, {ir::Attribute::of("alpha", alpha)}));
  return {};
}

Status infer_bias_add(InferContext& ctx) {
  const Shape *x = ctx.shape(0), *skip = ctx.shape(2);
  const bool fits = !x || !skip || may_equal(*x, *skip);
  if (!fits) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected that of {}, {}", ctx.node.version->inputs[2].name,
                 to_string(*skip), ctx.node.version->inputs[0].name, to_string(*x));
  }
  return infer_biased<1>(ctx);
}

Status lower_bias_add(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("Add", {biased(ctx, 1), ctx.input(2)}));
  return {};
}

// ---- BiasSplitGelu

Status infer_split_gelu(InferContext& ctx) {
  TREADLE_TRY(check_bias(ctx, 1));
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ctx.element(0)), Status();
  Shape half = *x;
  if (half.back().is_known() && half.back().value() % 2 != 0) {
    return error(Code::kInvalidArgument, "X has shape {}, expected a last axis of even size", to_string(*x));
  }
  half.back() = floor_div(half.back(), Dim(2));
  ctx.set_output(0, ctx.element(0), std::move(half));
  return {};
}

Status lower_split_gelu(LowerContext& ctx) {
  ir::Value* sum = biased(ctx, 1);
  ir::Node* halves = ctx.node("Split", std::array{sum}, 2,
                              {ir::Attribute::of("axis", int64_t{-1}), ir::Attribute::of("num_outputs", int64_t{2})});
  ctx.set_output(0, ctx.call("Mul", {halves->outputs[0], gelu(ctx, halves->outputs[1], "none")}));
  return {};
}

// All axes except the last are independent.
Status rows_axes(AxisContext& c) {
  TREADLE_TRY(axes::only_first(c));
  if (c.in(0) == c.rank(0) - 1) return looks_along("it takes the last axis apart");
  return c.give(0, c.in(0));
}

// ---- BiasSoftmax

// The softmax runs over all axes from `axis` on, taken as one. The bias has these axes and some of those before. It is
// repeated along the others, which are either the innermost or the outermost ones.
Status infer_bias_softmax(InferContext& ctx) {
  const Shape *x = ctx.shape(0), *bias = ctx.shape(1);
  if (x) TREADLE_TRY(normalize_axis(ctx.attributes().get_int("axis"), static_cast<int64_t>(x->size())).status());
  if (x && bias) {
    TREADLE_ASSIGN(const Shape both, broadcast(*x, *bias));
    if (!may_equal(both, *x)) {
      return error(Code::kInvalidArgument, "bias has shape {}, expected one that broadcasts to data, {}",
                   to_string(*bias), to_string(*x));
    }
  }
  return infer_like_input(ctx);
}

Status lower_bias_softmax(LowerContext& ctx) {
  ir::Value* sum = ctx.call("Add", {ctx.input(0), ctx.input(1)});
  const Type& x = ctx.type(0);
  if (!x.has_shape) return error(Code::kNotImplemented, "data of unknown rank");
  const auto rank = static_cast<int64_t>(x.rank());
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(ctx.attributes().get_int("axis"), rank));
  if (axis == rank - 1) {
    ctx.set_output(0, ctx.call("Softmax", {sum}));
    return {};
  }
  ir::Value* rows = ctx.call("Flatten", {sum}, {ir::Attribute::of("axis", axis)});
  ctx.set_output(0, ctx.call("Reshape", {ctx.call("Softmax", {rows}), ctx.call("Shape", {ctx.input(0)})}));
  return {};
}

Status bias_softmax_axes(AxisContext& c) {
  const int64_t axis = c.axis(c.rank(0), 1);
  if (c.in(0) >= axis) return looks_along(fmt::format("its softmax runs over axis {}", c.in(0)));
  return axes::broadcast(c);
}

// ---- Residual networks

Status infer_gated_add(InferContext& ctx) {
  const Shape *x = ctx.shape(0), *y = ctx.shape(1), *gate = ctx.shape(2);
  for (size_t i = 0; x && y && i < std::max(x->size(), y->size()); ++i) {
    if (x->size() == y->size() && !differ((*x)[i], (*y)[i])) continue;
    return error(Code::kInvalidArgument, "Y has shape {}, expected {}", to_string(*y), to_string(*x));
  }
  if (x && gate) {
    bool fits = gate->size() == x->size() && !differ(gate->back(), Dim(1));
    for (size_t i = 0; fits && i + 1 < x->size(); ++i) fits = !differ((*x)[i], (*gate)[i]);
    if (!fits) {
      return error(Code::kInvalidArgument, "gate has shape {}, expected that of X {} with a last axis of 1",
                   to_string(*gate), to_string(*x));
    }
  }
  return infer_like_input(ctx);
}

Status lower_gated_add(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("Add", {ctx.input(0), ctx.call("Mul", {ctx.input(1), ctx.input(2)})}));
  return {};
}

Status infer_scaled_silu(InferContext& ctx) {
  const Shape* scale = ctx.shape(1);
  if (scale && differ(element_count(*scale), Dim(1))) {
    return error(Code::kInvalidArgument, "scale has shape {}, expected one element", to_string(*scale));
  }
  return infer_like_input(ctx);
}

// The scale is multiplied in float, the argument rounded, and then the sigmoid taken.
Status lower_scaled_silu(LowerContext& ctx) {
  const ElementType type = ctx.type(0).element;
  ir::Value* scale = ctx.number(static_cast<double>(ctx.attributes().get_float("alpha")), ElementType::kFloat);
  if (ctx.has_input(1)) {
    scale = as_scalar(ctx, input_as(ctx, 1, ElementType::kFloat));
  }
  ir::Value* z = ctx.call("Mul", {input_as(ctx, 0, ElementType::kFloat), scale});
  z = cast(ctx, z, ElementType::kFloat, type);
  ctx.set_output(0, ctx.call("Mul", {z, ctx.call("Sigmoid", {z})}));
  return {};
}

}  // namespace

}  // namespace treadle::fused

TREADLE_OP(BiasGelu, "com.microsoft") {
  op.since(1).in("A", "T").in("B", "T").out("C", "T").type("T", types::kFloatsBf16);
  op.infer(fused::infer_biased<1>).lower(fused::lower_bias_gelu).axes(axes::broadcast, axes::unchanged);
}

TREADLE_OP(FastGelu, "com.microsoft") {
  op.since(1).in("X", "T").in("bias", "T", Arity::kOptional).out("Y", "T").type("T", types::kFloatsBf16);
  op.infer(fused::infer_biased<1>).lower(fused::lower_fast_gelu).axes(axes::broadcast, axes::unchanged);
}

TREADLE_OP(Gelu, "com.microsoft") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kFloatsBf16);
  op.infer(infer_like_input).lower(fused::lower_bias_gelu).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(QuickGelu, "com.microsoft") {
  op.since(1).in("X", "T").out("Y", "T").attr("alpha", 1.702).type("T", types::kFloatsBf16);
  op.infer(infer_like_input).lower(fused::lower_quick_gelu).axes(axes::element_by_element, axes::unchanged);
}

TREADLE_OP(BiasAdd, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("bias", "T")
      .in("skip", "T")
      .out("Y", "T")
      .type("T", tensors(ElementType::kFloat16, ElementType::kFloat));
  op.infer(fused::infer_bias_add).lower(fused::lower_bias_add).axes(axes::broadcast, axes::unchanged);
}

TREADLE_OP(BiasSplitGelu, "com.microsoft") {
  op.since(1).in("X", "T").in("bias", "T").out("Y", "T").type("T", tensors(ElementType::kFloat16, ElementType::kFloat));
  op.infer(fused::infer_split_gelu).lower(fused::lower_split_gelu).axes(fused::rows_axes, axes::unchanged);
}

TREADLE_OP(BiasSoftmax, "com.microsoft") {
  op.since(1)
      .in("data", "T")
      .in("bias", "T")
      .out("output", "T")
      .attr("axis", 1)
      .required("is_inner_broadcast", ir::AttributeKind::kInt)
      .type("T", types::kFloats);
  op.infer(fused::infer_bias_softmax).lower(fused::lower_bias_softmax).axes(fused::bias_softmax_axes);
}

TREADLE_OP(GatedAdd, "com.microsoft") {
  op.since(1).in("X", "T").in("Y", "T").in("gate", "T").out("output", "T").type("T", types::kFloatsTo32);
  op.infer(fused::infer_gated_add).lower(fused::lower_gated_add).axes(axes::broadcast, axes::aligned);
}

TREADLE_OP(ScaledSiLU, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("scale", "M", Arity::kOptional)
      .out("Y", "T")
      .attr("alpha", 1.0)
      .type("T", types::kFloatsTo32)
      .type("M", types::kFloatsTo32);
  op.infer(fused::infer_scaled_silu).lower(fused::lower_scaled_silu).axes(axes::element_by_element, axes::unchanged);
}
