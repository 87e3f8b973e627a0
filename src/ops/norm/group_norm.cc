// GroupNorm and SkipGroupNorm of diffusion models: GroupNormalization in float, of images in NHWC or NCHW, optionally
// followed by SiLU.

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::norm {

namespace {

enum Input : size_t { kX, kGamma, kBeta, kSkip, kBias };

Status check_channels(const InferContext& ctx, const Dim& channels) {
  const int64_t groups = ctx.attributes().get_int("groups");
  if (groups < 1) return error(Code::kInvalidModel, "attribute groups is {}, expected at least 1", groups);
  if (channels.is_known() && channels.value() % groups != 0) {
    return error(Code::kInvalidArgument, "X has {} channels, expected a multiple of attribute groups, {}",
                 channels.value(), groups);
  }
  for (const size_t i : {kGamma, kBeta, kBias}) {
    const Shape* shape = ctx.shape(i);
    if (!shape || (shape->size() == 1 && !differ((*shape)[0], channels))) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected [{}]", ctx.node.version->inputs[i].name,
                 to_string(*shape), channels.to_string());
  }
  return {};
}

// Skip has the shape of X, or one number for each channel of each image: [N, C] or [N, 1, 1, C].
Status check_skip(const Shape& x, const Shape& skip, bool channels_last) {
  bool fits = skip.size() == 2 && !differ(skip[0], x[0]) && !differ(skip[1], x[channels_last ? 3 : 1]);
  if (skip.size() == 4) {
    fits = true;
    for (size_t i = 0; i < 4; ++i) {
      const bool pixels = channels_last ? i == 1 || i == 2 : i >= 2;
      fits = fits && (!differ(skip[i], x[i]) || (pixels && skip[i].is_known(1)));
    }
  }
  if (fits) return {};
  return error(Code::kInvalidArgument,
               "skip has shape {}, expected that of X, {}, or one number for each channel: [{},{}]", to_string(skip),
               to_string(x), x[0].to_string(), x[channels_last ? 3 : 1].to_string());
}

Status infer_group_norm(InferContext& ctx) {
  const int64_t activation = ctx.attributes().get_int("activation");
  if (activation != 0 && activation != 1) {
    return error(Code::kInvalidModel, "attribute activation is {}, expected 0 (none) or 1 (SiLU)", activation);
  }
  for (size_t i = 0; i < ctx.outputs.size(); ++i) ctx.set_output(i, ctx.input(kX));
  const Shape* x = ctx.shape(kX);
  if (!x) return {};
  const bool channels_last = ctx.attributes().get_int("channels_last") != 0;
  if (x->size() != 4) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [{}]", to_string(*x),
                 channels_last ? "N,H,W,C" : "N,C,H,W");
  }
  if (const Shape* skip = ctx.shape(kSkip)) TREADLE_TRY(check_skip(*x, *skip, channels_last));
  return check_channels(ctx, (*x)[channels_last ? 3 : 1]);
}

// The sum of X, skip and bias, in the type of X.
ir::Value* added(LowerContext& ctx, bool channels_last) {
  ir::Value *sum = ctx.input(kX), *skip = ctx.input(kSkip);
  const auto of_channels = [&](ir::Value* v, std::initializer_list<int64_t> axes) {
    return ctx.call("Unsqueeze", {v, ctx.constant_int64s(axes)});
  };
  if (ctx.type(kSkip).rank() == 2) {
    skip = channels_last ? of_channels(skip, {1, 2}) : of_channels(skip, {2, 3});
  }
  sum = ctx.call("Add", {sum, skip});
  if (!ctx.has_input(kBias)) return sum;
  return ctx.call("Add", {sum, channels_last ? ctx.input(kBias) : of_channels(ctx.input(kBias), {1, 2})});
}

Status lower_group_norm(LowerContext& ctx) {
  constexpr ElementType kWide = ElementType::kFloat;
  const bool channels_last = ctx.attributes().get_int("channels_last") != 0;
  const ElementType type = ctx.type(kX).element;
  ir::Value* sum = ctx.has_input(kSkip) ? added(ctx, channels_last) : ctx.input(kX);
  const auto permuted = [&](ir::Value* v, std::vector<int64_t> order) {
    return channels_last ? ctx.call("Transpose", {v}, {ir::Attribute::of("perm", std::move(order))}) : v;
  };
  ir::Value* x = permuted(fused::cast(ctx, sum, type, kWide), {0, 3, 1, 2});
  ir::Value* y =
      ctx.call("GroupNormalization", {x, fused::input_as(ctx, kGamma, kWide), fused::input_as(ctx, kBeta, kWide)},
               {ir::Attribute::of("num_groups", ctx.attributes().get_int("groups")),
                ir::Attribute::of("epsilon", ctx.attributes().get_float("epsilon"))});
  y = permuted(y, {0, 2, 3, 1});
  if (ctx.attributes().get_int("activation") == 1) y = ctx.call("Swish", {y});
  ctx.set_output(0, fused::cast(ctx, y, kWide, type));
  if (ctx.has_input(kSkip)) ctx.set_output(1, sum);
  return {};
}

}  // namespace

}  // namespace treadle::norm

TREADLE_OP(GroupNorm, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("gamma", "M")
      .in("beta", "M")
      .out("Y", "T")
      .required("activation", ir::AttributeKind::kInt)
      .attr("channels_last", 1)
      .attr("epsilon", 1e-05)
      .required("groups", ir::AttributeKind::kInt)
      .type("T", tensors(ElementType::kFloat16, ElementType::kFloat))
      .type("M", tensors(ElementType::kFloat16, ElementType::kFloat));
  op.infer(norm::infer_group_norm).lower(norm::lower_group_norm).axes(axes::entries);
}

TREADLE_OP(SkipGroupNorm, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("gamma", "M")
      .in("beta", "M")
      .in("skip", "T")
      .in("bias", "T", Arity::kOptional)
      .out("Y", "T")
      .out("S", "T", Arity::kOptional)
      .required("activation", ir::AttributeKind::kInt)
      .attr("channels_last", 1)
      .attr("epsilon", 1e-05)
      .required("groups", ir::AttributeKind::kInt)
      .type("T", tensors(ElementType::kFloat16, ElementType::kFloat))
      .type("M", tensors(ElementType::kFloat16, ElementType::kFloat));
  op.infer(norm::infer_group_norm).lower(norm::lower_group_norm).axes(axes::entries_of<0b1001>);
}
