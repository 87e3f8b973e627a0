// GatedRMSNorm and BranchwiseRMSNorm: normalise groups of the last axis separately, in float.

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::norm {

namespace {

constexpr ElementType kWide = ElementType::kFloat;

ir::Value* rms_norm(LowerContext& ctx, ir::Value* x, ir::Value* scale) {
  return ctx.call("RMSNormalization", {x, scale},
                  {ir::Attribute::of("epsilon", ctx.attributes().get_float("epsilon"))});
}

// All axes before those of a row of the scale (the last one or two) are independent.
template <int64_t kCovered>
Status leading_axes(AxisContext& c) {
  for (size_t i = 0; i < c.inputs(); ++i) {
    const bool alike = c.rank(i) == c.rank(0) && i != 1;
    if (c.runs_along(i) && !alike) return looks_along("its scale runs along it");
    if (alike && c.in(i) != c.in(0)) return looks_along("not all of its inputs run along it");
  }
  if (c.in(0) >= c.rank(0) - kCovered) return looks_along("it normalises along it");
  return c.give(0, c.in(0));
}

// ---- GatedRMSNorm

Status infer_gated(InferContext& ctx) {
  const std::string_view activation = ctx.attributes().get_string("activation");
  if (activation != "silu" && activation != "swish" && activation != "sigmoid") {
    return error(Code::kInvalidModel, "attribute activation is '{}', expected 'silu', 'swish' or 'sigmoid'",
                 activation);
  }
  const Shape *x = ctx.shape(0), *scale = ctx.shape(1), *gate = ctx.shape(2);
  if (scale && scale->size() != 1) {
    return error(Code::kInvalidArgument, "scale has shape {}, expected one dimension", to_string(*scale));
  }
  if (x && scale && !x->empty() && x->back().is_known() && (*scale)[0].is_known() &&
      ((*scale)[0].value() == 0 || x->back().value() % (*scale)[0].value() != 0)) {
    return error(Code::kInvalidArgument, "X has shape {}, expected rows of a multiple of {}, the size of scale",
                 to_string(*x), (*scale)[0].to_string());
  }
  bool same = !x || !gate || x->size() == gate->size();
  for (size_t i = 0; same && x && gate && i < x->size(); ++i) same = !differ((*x)[i], (*gate)[i]);
  if (!same) {
    return error(Code::kInvalidArgument, "gate has shape {}, expected that of X {}", to_string(*gate), to_string(*x));
  }
  return infer_like_input(ctx);
}

Status lower_gated(LowerContext& ctx) {
  ir::Value* shape = ctx.call("Shape", {ctx.input(0)});
  ir::Value* groups = fused::concat(ctx, {ctx.constant_int64s({-1}), ctx.call("Shape", {ctx.input(1)})});
  ir::Value* x = ctx.call("Reshape", {fused::input_as(ctx, 0, kWide), groups});
  x = ctx.call("Reshape", {rms_norm(ctx, x, fused::input_as(ctx, 1, kWide)), shape});
  ir::Value* gate = fused::input_as(ctx, 2, kWide);
  const bool sigmoid = ctx.attributes().get_string("activation") == "sigmoid";
  ir::Value* y = ctx.call("Mul", {x, ctx.call(sigmoid ? "Sigmoid" : "Swish", {gate})});
  ctx.set_output(0, fused::cast(ctx, y, kWide, ctx.type(0).element));
  return {};
}

// ---- BranchwiseRMSNorm

Status infer_branchwise(InferContext& ctx) {
  const int64_t branches = ctx.attributes().get_int("num_branches");
  const Shape *x = ctx.shape(0), *scale = ctx.shape(1);
  if (branches < 0) return error(Code::kInvalidModel, "attribute num_branches is {}, expected 0 or more", branches);
  if (x && x->size() < (branches == 0 ? 2u : 1u)) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [...,branches,size]", to_string(*x));
  }
  if (x && branches > 0 && x->back().is_known() && x->back().value() % branches != 0) {
    return error(Code::kInvalidArgument, "X has shape {}, expected rows that divide into {} branches", to_string(*x),
                 branches);
  }
  if (x && scale) {
    const Dim count = branches > 0 ? Dim(branches) : (*x)[x->size() - 2];
    const Dim size = branches > 0 ? floor_div(x->back(), Dim(branches)) : x->back();
    const bool fits = scale->size() == 2   ? !differ((*scale)[0], count) && !differ((*scale)[1], size)
                      : scale->size() == 1 ? !differ((*scale)[0], size) || !differ((*scale)[0], count * size)
                                           : false;
    if (!fits) {
      return error(Code::kInvalidArgument, "scale has shape {0}, expected [{1},{2}], [{1}*{2}] or [{2}]",
                   to_string(*scale), count.to_string(), size.to_string());
    }
  }
  return infer_like_input(ctx);
}

Status lower_branchwise(LowerContext& ctx) {
  const int64_t branches = ctx.attributes().get_int("num_branches");
  ir::Value *shape = ctx.call("Shape", {ctx.input(0)}), *x = fused::input_as(ctx, 0, kWide);
  if (branches > 0) {
    x = ctx.call(
        "Reshape",
        {x, fused::concat(ctx, {fused::sizes(ctx, ctx.input(0), 0, -1), ctx.constant_int64s({branches, -1})})});
  }
  ir::Value* one = ctx.call("Reshape", {ctx.number(1, kWide), ctx.constant_int64s({1})});
  ir::Value* y = rms_norm(ctx, x, one);
  if (ctx.has_input(1)) {
    // A scale with one row stays one row. A scale with more elements has a row for each branch.
    ir::Value* size = fused::sizes(ctx, x, -1, INT64_MAX);
    ir::Value* rows = fused::concat(ctx, {ctx.constant_int64s({-1}), size});
    y = ctx.call("Mul", {y, ctx.call("Reshape", {fused::input_as(ctx, 1, kWide), rows})});
  }
  if (branches > 0) y = ctx.call("Reshape", {y, shape});
  ctx.set_output(0, fused::cast(ctx, y, kWide, ctx.type(0).element));
  return {};
}

}  // namespace

}  // namespace treadle::norm

TREADLE_OP(GatedRMSNorm, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("scale", "T")
      .in("gate", "T")
      .out("Y", "T")
      .attr("activation", "silu")
      .attr("epsilon", 1e-05)
      .type("T", types::kFloatsTo32);
  op.infer(norm::infer_gated).lower(norm::lower_gated).axes(norm::leading_axes<1>);
}

TREADLE_OP(BranchwiseRMSNorm, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("scale", "M", Arity::kOptional)
      .out("Y", "T")
      .attr("epsilon", 1e-05)
      .attr("num_branches", 0)
      .type("T", types::kFloatsTo32)
      .type("M", types::kFloatsTo32);
  op.infer(norm::infer_branchwise).lower(norm::lower_branchwise).axes(norm::leading_axes<2>);
}
