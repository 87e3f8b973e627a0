// LinearAttentionGate: decay and learning rates of LinearAttention's states. EngramGate: how much of a looked-up value
// each stream takes. Both compute in float.

#include <cmath>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::attention {

namespace {

using ir::Attribute;
using ir::Value;

constexpr ElementType kWide = ElementType::kFloat;

Status check_shape(const InferContext& ctx, size_t i, const Shape& expected) {
  const Shape* shape = ctx.shape(i);
  bool fits = !shape || shape->size() == expected.size();
  for (size_t k = 0; fits && shape && k < expected.size(); ++k) fits = !differ((*shape)[k], expected[k]);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", ctx.node.version->inputs[i].name,
               to_string(*shape), to_string(expected));
}

Value* as_float(LowerContext& ctx, size_t i) {
  return fused::input_as(ctx, i, kWide);
}

void set_narrow(LowerContext& ctx, size_t i, Value* v) {
  ctx.set_output(i, fused::cast(ctx, v, kWide, ctx.type(0).element));
}

// ---- LinearAttentionGate

Status infer_linear_gate(InferContext& ctx) {
  const Shape* a = ctx.shape(0);
  if (a && a->size() != 3) {
    return error(Code::kInvalidArgument, "a has shape {}, expected [batch,length,heads]", to_string(*a));
  }
  if (a) {
    for (const size_t i : {1, 2}) TREADLE_TRY(check_shape(ctx, i, {a->back()}));
    TREADLE_TRY(check_shape(ctx, 3, *a));
  }
  if (ctx.outputs.size() > 1) {
    if (!ctx.has_input(3)) return error(Code::kInvalidModel, "beta is asked for, but b is missing");
    ctx.set_output(1, ctx.input(3));
  }
  ctx.set_output(0, ctx.input(0));
  return {};
}

Status lower_linear_gate(LowerContext& ctx) {
  Value* soft = ctx.call("Softplus", {ctx.call("Add", {as_float(ctx, 0), ctx.input(1)})});
  set_narrow(ctx, 0, ctx.call("Mul", {soft, ctx.input(2)}));
  if (ctx.has_input(3)) set_narrow(ctx, 1, ctx.call("Sigmoid", {as_float(ctx, 3)}));
  return {};
}

// Batch entries and steps are independent.
Status linear_gate_axes(AxisContext& c) {
  const bool both = !c.present(3) || c.in(3) == c.in(0);
  if (!both || c.in(0) == 2 || c.runs_along(1) || c.runs_along(2)) return looks_along("its heads run along it");
  return c.give_all(c.in(0));
}

// ---- EngramGate

enum Input : size_t { kKey, kQuery, kValue, kKeyScale, kQueryScale, kConvScale };

Status infer_engram(InferContext& ctx) {
  const Shape* key = ctx.shape(kKey);
  if (key && key->size() != 4) {
    return error(Code::kInvalidArgument, "key has shape {}, expected [batch,length,streams,size]", to_string(*key));
  }
  if (key) {
    TREADLE_TRY(check_shape(ctx, kQuery, *key));
    TREADLE_TRY(check_shape(ctx, kValue, {(*key)[0], (*key)[1], (*key)[3]}));
    for (const size_t i : {kKeyScale, kQueryScale, kConvScale})
      TREADLE_TRY(check_shape(ctx, i, {(*key)[2], (*key)[3]}));
  }
  if (ctx.outputs.size() > 1) {
    if (!ctx.has_input(kConvScale)) {
      return error(Code::kInvalidModel, "gated_value_normed is asked for, but conv_norm_scale is missing");
    }
    ctx.set_output(1, ctx.input(kKey));
  }
  ctx.set_output(0, ctx.input(kKey));
  return {};
}

// Divides rows of the last axis by their root mean square, and multiplies them by the scale of their stream.
Value* normalised(LowerContext& ctx, Value* x, size_t scale) {
  Value* one = ctx.call("Reshape", {ctx.number(1, kWide), ctx.constant_int64s({1})});
  Value* y = ctx.call("RMSNormalization", {x, one}, {Attribute::of("epsilon", ctx.attributes().get_float("epsilon"))});
  return ctx.call("Mul", {y, as_float(ctx, scale)});
}

Status lower_engram(LowerContext& ctx) {
  constexpr double kLeast = 1e-6;
  Value *key = normalised(ctx, as_float(ctx, kKey), kKeyScale),
        *query = normalised(ctx, as_float(ctx, kQuery), kQueryScale);
  Value* size =
      fused::cast(ctx, fused::as_scalar(ctx, fused::size_of(ctx, ctx.input(kKey), 3)), ElementType::kInt64, kWide);
  Value* dot = ctx.call("ReduceSum", {ctx.call("Mul", {key, query}), ctx.constant_int64s({-1})});
  dot = ctx.call("Div", {dot, ctx.call("Sqrt", {size})});
  Value* root = ctx.call("Sqrt", {ctx.call("Max", {ctx.call("Abs", {dot}), ctx.number(kLeast, kWide)})});
  Value* gate = ctx.call("Sigmoid", {ctx.call("Mul", {ctx.call("Sign", {dot}), root})});
  Value* y = ctx.call("Mul", {gate, fused::unsqueeze(ctx, as_float(ctx, kValue), {2})});
  set_narrow(ctx, 0, y);
  if (ctx.has_input(kConvScale)) set_narrow(ctx, 1, normalised(ctx, y, kConvScale));
  return {};
}

// Batch entries and steps are independent.
Status engram_axes(AxisContext& c) {
  if (c.in(kKey) > 1) return looks_along("its streams or their rows run along it");
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (c.present(i) && c.in(i) != (i < kKeyScale ? c.in(kKey) : kNoAxis))
      return looks_along("not all of its inputs run along it");
  }
  return c.give_all(c.in(kKey));
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(LinearAttentionGate, "com.microsoft") {
  op.since(1)
      .in("a", "T")
      .in("dt_bias", "TF")
      .in("decay_scale", "TF")
      .in("b", "T", Arity::kOptional)
      .out("decay", "T")
      .out("beta", "T", Arity::kOptional)
      .type("T", types::kFloatsTo32)
      .type("TF", types::kFloat32s);
  op.infer(attention::infer_linear_gate).lower(attention::lower_linear_gate).axes(attention::linear_gate_axes);
}

TREADLE_OP(EngramGate, "com.microsoft") {
  op.since(1)
      .in("key", "T")
      .in("query", "T")
      .in("value", "T")
      .in("key_norm_scale", "T")
      .in("query_norm_scale", "T")
      .in("conv_norm_scale", "T", Arity::kOptional)
      .out("output", "T")
      .out("gated_value_normed", "T", Arity::kOptional)
      .attr("epsilon", 1e-05)
      .type("T", types::kFloatsTo32);
  op.infer(attention::infer_engram).lower(attention::lower_engram).axes(attention::engram_axes);
}
