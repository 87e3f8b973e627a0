// MoEGroupRouter: the experts of each token and their weights, from sigmoids of the token's logits. A bias counts for
// the choice but not for the weights. Computed in float.
//
//   scores = sigmoid(logits), or sigmoid(activations x projection^T)
//   router_probs: log(scores) of the `top_k` experts with the largest scores + bias, and `router_sentinel` elsewhere.
//     Experts are divided into groups of equal size. Only the `topk_group` groups count whose `group_topk` largest sums
//     add up to most.
//   selection_scores, router_weights: scores + bias and scores of all experts, for a consumer that chooses itself.

#include <cmath>
#include <limits>

#include "op/axes.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle {

namespace {

using ir::Attribute;
using ir::Value;

enum Input : size_t { kLogits, kBias, kProjection };
enum Output : size_t { kProbs, kSelection, kWeights, kOutputs };

constexpr ElementType kWide = ElementType::kFloat;

struct Routing {
  int64_t chosen = 0, groups = 0, active = 0, summed = 0;

  bool has_one_group() const { return groups == 1 && active == 1; }
};

Result<Routing> read_routing(const ir::Attributes& attributes) {
  for (const char* name : {"top_k", "n_group", "topk_group", "group_topk"}) {
    const int64_t given = attributes.get_int(name);
    if (given < 1) return error(Code::kInvalidModel, "attribute {} is {}, expected at least 1", name, given);
  }
  const Routing r{attributes.get_int("top_k"), attributes.get_int("n_group"), attributes.get_int("topk_group"),
                  attributes.get_int("group_topk")};
  if (r.active <= r.groups) return r;
  return error(Code::kInvalidModel, "attribute topk_group is {}, expected at most n_group, which is {}", r.active,
               r.groups);
}

Status check_experts(const Routing& routing, const Dim& experts) {
  if (!experts.is_known()) return {};
  const int64_t count = experts.value();
  if (count < routing.chosen) {
    return error(Code::kInvalidArgument, "{} experts, expected at least as many as top_k says, which is {}", count,
                 routing.chosen);
  }
  if (count % routing.groups == 0) return {};
  return error(Code::kInvalidArgument, "{} experts, expected a multiple of n_group, which is {}", count,
               routing.groups);
}

// Checks for outputs with all scores.
Status check_full(const Routing& routing, const Dim& experts) {
  constexpr int64_t kMostExperts = 512;
  if (!routing.has_one_group()) {
    return error(Code::kInvalidModel, "selection_scores are asked for with {} groups, expected n_group = 1",
                 routing.groups);
  }
  if (!experts.is_known() || experts.value() <= kMostExperts) return {};
  return error(Code::kInvalidArgument, "selection_scores of {} experts are asked for, expected at most {}",
               experts.value(), kMostExperts);
}

Status check_projection(const InferContext& ctx) {
  constexpr int64_t kLanes = 256;  // onnxruntime adds in so many lanes
  const Shape *x = ctx.shape(kLogits), *w = ctx.shape(kProjection);
  if (w && w->size() != 2) {
    return error(Code::kInvalidArgument, "projection_weight has shape {}, expected [experts,width]", to_string(*w));
  }
  if (x && x->size() != 2) {
    return error(Code::kInvalidArgument, "logits have shape {}, expected [tokens,width] with a projection_weight",
                 to_string(*x));
  }
  if (x && w && differ(x->back(), w->back())) {
    return error(Code::kInvalidArgument, "projection_weight has shape {}, expected [experts,{}]", to_string(*w),
                 x->back().to_string());
  }
  const Dim width = x ? x->back() : w ? w->back() : Dim();
  if (!width.is_known() || (width.value() > 0 && width.value() % kLanes == 0)) return {};
  return error(Code::kInvalidArgument, "logits have a width of {}, expected a multiple of {}", width.value(), kLanes);
}

Dim count_of_experts(const InferContext& ctx) {
  const Shape *x = ctx.shape(kLogits), *w = ctx.shape(kProjection), *bias = ctx.shape(kBias);
  const Dim stated = ctx.has_input(kProjection) ? (w ? w->front() : Dim()) : x ? x->back() : Dim();
  return stated.is_known() || !bias ? stated : bias->front();
}

Status infer_router(InferContext& ctx) {
  TREADLE_ASSIGN(const Routing routing, read_routing(ctx.attributes()));
  const Shape *x = ctx.shape(kLogits), *bias = ctx.shape(kBias);
  const bool is_full = ctx.outputs.size() > 1;
  if (is_full && ctx.outputs.size() < kOutputs) {
    return error(Code::kInvalidModel, "selection_scores are asked for, expected router_weights with them");
  }
  if (x && x->size() < 2) {
    return error(Code::kInvalidArgument, "logits have shape {}, expected [...,experts] of rank 2 or more",
                 to_string(*x));
  }
  if (ctx.has_input(kProjection)) {
    if (!is_full) {
      return error(Code::kInvalidModel, "projection_weight is given, expected selection_scores among the outputs");
    }
    TREADLE_TRY(check_projection(ctx));
  }
  if (bias && bias->size() != 1) {
    return error(Code::kInvalidArgument, "expert_bias has shape {}, expected [experts]", to_string(*bias));
  }
  const Dim experts = count_of_experts(ctx);
  if (bias && differ(bias->front(), experts)) {
    return error(Code::kInvalidArgument, "expert_bias has shape {}, expected [{}]", to_string(*bias),
                 experts.to_string());
  }
  TREADLE_TRY(check_experts(routing, experts));
  if (is_full) TREADLE_TRY(check_full(routing, experts));
  const Dim tokens = x ? element_count(Shape(x->begin(), x->end() - 1)) : Dim();
  for (size_t i = 0; i < ctx.outputs.size(); ++i) {
    ctx.set_output(i, i == kProbs ? ctx.element(kLogits) : kWide, Shape{tokens, experts});
  }
  return {};
}

// ---- Lowering

class Router {
 public:
  Router(LowerContext& ctx, const Routing& routing, int64_t experts)
      : ctx_(ctx), routing_(routing), size_(experts / routing.groups) {}

  // log(scores) of the chosen experts.
  Value* probabilities(Value* scores) {
    constexpr double kLeast = 1e-20;
    Value* const logs = ctx_.call("Log", {ctx_.call("Max", {scores, ctx_.number(kLeast, kWide)})});
    Value* const experts = chosen(ranked(ctx_.call("Add", {scores, ctx_.input(kBias)})));
    Value* const others =
        ctx_.call("Expand", {ctx_.number(static_cast<double>(ctx_.attributes().get_float("router_sentinel")), kWide),
                             ctx_.call("Shape", {scores})});
    return ctx_.call("ScatterElements", {others, experts, along("GatherElements", logs, experts, 1)},
                     {Attribute::of("axis", 1)});
  }

 private:
  Value* along(const char* op, Value* data, Value* indices, int64_t axis) {
    return ctx_.call(op, {data, indices}, {Attribute::of("axis", axis)});
  }
  Value* reshaped(Value* v, std::initializer_list<int64_t> sizes) {
    return ctx_.call("Reshape", {v, ctx_.constant_int64s(sizes)});
  }

  // Replaces NaN by -infinity, which sorts last.
  Value* ranked(Value* v) {
    constexpr double kLast = -std::numeric_limits<double>::infinity();
    return ctx_.call("Where", {ctx_.call("IsNaN", {v}), ctx_.number(kLast, kWide), v});
  }

  // Result 0: values, result 1: their positions; of equal values the first.
  Value* top(Value* v, int64_t count, size_t result, bool is_largest = true) {
    const std::array<Value*, 2> operands{v, ctx_.constant_int64s({count})};
    ir::Node* const node = ctx_.node("TopK", operands, 2, {Attribute::of("largest", int64_t{is_largest})});
    return node->outputs[result];
  }

  // The chosen experts, [tokens, top_k], or fewer if fewer experts count.
  Value* chosen(Value* sums) {
    if (routing_.active == routing_.groups) return top(sums, routing_.chosen, 1);
    Value* const grouped = reshaped(sums, {0, routing_.groups, size_});
    Value* const best = top(grouped, std::min(routing_.summed, size_), 0);
    Value* const totals = ctx_.call("ReduceSum", {best, ctx_.constant_int64s({2})}, {Attribute::of("keepdims", 0)});
    // In ascending order, so that of equal experts the first counts.
    Value* const groups = top(top(ranked(totals), routing_.active, 1), routing_.active, 0, false);
    Value* const rows = ctx_.call("Expand", {fused::unsqueeze(ctx_, groups, {2}), ctx_.constant_int64s({1, 1, size_})});
    const int64_t candidates = routing_.active * size_;
    Value* const picked = reshaped(along("GatherElements", grouped, rows, 1), {0, candidates});
    Value* const at = top(picked, std::min(routing_.chosen, candidates), 1);
    Value* const size = ctx_.constant_int64(size_);
    Value* const group = along("GatherElements", groups, ctx_.call("Div", {at, size}), 1);
    return ctx_.call("Add", {ctx_.call("Mul", {group, size}), ctx_.call("Mod", {at, size})});
  }

  LowerContext& ctx_;
  const Routing& routing_;
  const int64_t size_;  // of a group
};

Value* projected(LowerContext& ctx) {
  Value* const weights = fused::input_as(ctx, kProjection, kWide);
  return ctx.call("Gemm", {fused::input_as(ctx, kLogits, kWide), weights}, {Attribute::of("transB", 1)});
}

Status lower_router(LowerContext& ctx) {
  TREADLE_ASSIGN(const Routing routing, read_routing(ctx.attributes()));
  const Type& x = ctx.type(kLogits);
  if (!x.has_shape) return error(Code::kNotImplemented, "logits of unknown rank");
  const bool is_projected = ctx.has_input(kProjection);
  Value* const logits =
      is_projected ? projected(ctx)
                   : ctx.call("Flatten", {fused::input_as(ctx, kLogits, kWide)}, {Attribute::of("axis", x.rank() - 1)});
  Value* const scores = ctx.call("Sigmoid", {logits});
  if (ctx.node().output_count > 1) {
    ctx.set_output(kSelection, ctx.call("Add", {scores, ctx.input(kBias)}));
    ctx.set_output(kWeights, scores);
    return {};
  }
  if (!x.shape.back().is_known()) return error(Code::kNotImplemented, "experts of unknown number");
  Router router(ctx, routing, x.shape.back().value());
  ctx.set_output(kProbs, fused::cast(ctx, router.probabilities(scores), kWide, x.element));
  return {};
}

// Tokens along a single axis are independent.
Status router_axes(AxisContext& c) {
  if (!c.only_runs_along(kLogits) || c.in(kLogits) != 0) return looks_along("its experts run along it");
  if (c.rank(kLogits) != 2) return looks_along("it makes one axis of all tokens");
  return c.give_all(0);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(MoEGroupRouter, "com.microsoft") {
  op.since(1)
      .in("logits", "T")
      .in("expert_bias", "TF")
      .in("projection_weight", "T", Arity::kOptional)
      .out("router_probs", "T", Arity::kOptional)
      .out("selection_scores", "TF", Arity::kOptional)
      .out("router_weights", "TF", Arity::kOptional)
      .attr("group_topk", 2)
      .attr("n_group", 1)
      .attr("router_sentinel", -10000.0)
      .required("top_k", ir::AttributeKind::kInt)
      .attr("topk_group", 1)
      .type("T", types::kFloatsTo32)
      .type("TF", types::kFloat32s);
  op.infer(infer_router).lower(lower_router).axes(router_axes);
}
