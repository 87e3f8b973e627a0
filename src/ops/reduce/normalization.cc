// LpNormalization and MeanVarianceNormalization, lowered to reductions and elementwise operators. Narrow floats are
// computed in float.

#include <cstring>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/work.h"

namespace treadle {

namespace {

ir::Value* cast_to(LowerContext& ctx, ir::Value* x, ElementType from, ElementType to) {
  if (from == to) return x;
  return ctx.call("Cast", {x}, {ir::Attribute::of("to", static_cast<int64_t>(to))});
}

ir::Value* scalar(LowerContext& ctx, ElementType type, double value) {
  if (type == ElementType::kDouble) return ctx.constant(Tensor::scalar<double>(type, value));
  return ctx.constant(Tensor::scalar<float>(ElementType::kFloat, static_cast<float>(value)));
}

Status infer_lp_normalization(InferContext& ctx) {
  const int64_t p = ctx.attributes().get_int("p");
  if (p != 1 && p != 2) return error(Code::kInvalidModel, "attribute p is {}, expected 1 or 2", p);
  if (ctx.shape(0)) TREADLE_TRY(normalize_axis(ctx.attributes().get_int("axis"), ctx.input(0).rank()).status());
  return infer_like_input(ctx);
}

// If the norm is zero, all elements are, and the result is zero.
Status lower_lp_normalization(LowerContext& ctx) {
  const ElementType type = ctx.type(0).element, wide = wide_type(type);
  ir::Value* x = cast_to(ctx, ctx.input(0), type, wide);
  ir::Value* axes = ctx.constant_int64s({ctx.attributes().get_int("axis")});
  ir::Value* norm = ctx.call(ctx.attributes().get_int("p") == 1 ? "ReduceL1" : "ReduceL2", {x, axes});
  ir::Value* is_zero = ctx.call("Equal", {norm, scalar(ctx, wide, 0)});
  ir::Value* divisor = ctx.call("Where", {is_zero, scalar(ctx, wide, 1), norm});
  ctx.set_output(0, cast_to(ctx, ctx.call("Div", {x, divisor}), wide, type));
  return {};
}

// The first version has no axes: it reduces all but the channels, or with `across_channels` all.
std::vector<int64_t> normalised_axes(const LowerContext& ctx) {
  const auto named = ctx.attributes().get_ints("axes");
  if (ctx.version() >= 9) return {named.begin(), named.end()};
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < ctx.type(0).rank(); ++axis) {
    if (axis != 1 || ctx.attributes().get_int("across_channels") != 0) axes.push_back(axis);
  }
  return axes;
}

Status lower_mean_variance(LowerContext& ctx) {
  const ElementType type = ctx.type(0).element, wide = wide_type(type);
  if (ctx.version() < 9 && !ctx.type(0).has_shape) return error(Code::kNotImplemented, "input of unknown rank");
  ir::Value* x = cast_to(ctx, ctx.input(0), type, wide);
  ir::Value* axes = ctx.constant(Tensor::of_int64(normalised_axes(ctx)));
  ir::Value* centred = ctx.call("Sub", {x, ctx.call("ReduceMean", {x, axes})});
  if (ctx.version() < 9 && ctx.attributes().get_int("normalize_variance") == 0) {
    ctx.set_output(0, cast_to(ctx, centred, wide, type));
    return {};
  }
  ir::Value* variance = ctx.call("ReduceMean", {ctx.call("Mul", {centred, centred}), axes});
  ir::Value* deviation = ctx.call("Add", {ctx.call("Sqrt", {variance}), scalar(ctx, wide, 1e-9)});
  ctx.set_output(0, cast_to(ctx, ctx.call("Div", {centred, deviation}), wide, type));
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(LpNormalization, "") {
  op.since(1).in("input", "T").out("output", "T").attr("axis", -1).attr("p", 2).type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_lp_normalization)
      .lower(lower_lp_normalization)
      .axes(axes::along_axis_attribute, axes::shift_axis)
      .work(work::reduction);
}

TREADLE_OP(MeanVarianceNormalization, "") {
  // The first version was experimental; onnxruntime still runs models with it.
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .attr("across_channels", 0)
      .attr("normalize_variance", 1)
      .type("T", types::kFloats);
  op.since(9)
      .no_inputs()
      .in("X", "T")
      .no_outputs()
      .out("Y", "T")
      .drop_attr("across_channels")
      .drop_attr("normalize_variance")
      .attr_ints("axes", {0, 2, 3});
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_like_input).lower(lower_mean_variance).axes(axes::reduced, axes::shift_axes).work(work::reduction);
}
