#include "op/axis_rules.h"
#include "op/loop_view.h"
#include "op/op_def.h"
#include "ops/control/bodies.h"

namespace treadle {

namespace {

Result<std::vector<Type>> infer_branch(InferContext& ctx, const char* attribute) {
  if (const ir::Region* branch = ctx.bodies->region(attribute)) {
    TREADLE_TRY(check_body(ctx.node, *branch, 0, ctx.outputs.size()));
  }
  return ctx.bodies->infer(attribute, {});
}

Status infer_if(InferContext& ctx) {
  TREADLE_TRY(check_one_element(ctx, 0, "cond"));
  if (!ctx.bodies) return {};
  // With a known condition the other branch need not be valid for these sizes: exporters test a rank or a size before a
  // Squeeze.
  if (const Tensor* cond = ctx.value(0); cond && cond->element_count() == 1) {
    TREADLE_ASSIGN(auto taken, infer_branch(ctx, cond->int64_at(0) ? "then_branch" : "else_branch"));
    for (size_t i = 0; i < taken.size(); ++i) ctx.set_output(i, std::move(taken[i]));
    return {};
  }
  TREADLE_ASSIGN(auto then_types, infer_branch(ctx, "then_branch"));
  TREADLE_ASSIGN(auto else_types, infer_branch(ctx, "else_branch"));
  for (size_t i = 0; i < std::min(then_types.size(), else_types.size()); ++i) {
    auto both = unite(then_types[i], else_types[i]);
    if (!both.ok()) {
      return error(Code::kInvalidModel,
                   "result {} is {} in then_branch and {} in else_branch, expected types that agree", i,
                   then_types[i].to_string(), else_types[i].to_string());
    }
    ctx.set_output(i, std::move(both).value());
  }
  return {};
}

Status branch_axes(AxisContext& c) {
  if (c.runs_along(0)) return looks_along("its condition runs along it");
  const IfView choice(c.node());
  TREADLE_TRY(carry_axis(choice.then_branch(), c.axes()));
  TREADLE_TRY(carry_axis(choice.else_branch(), c.axes()));
  for (size_t i = 0; i < choice.results(); ++i) {
    const auto [yes, no, result] = choice.result(i);
    if (!result) continue;
    TREADLE_TRY(axes::agree(c.axes(), yes, no));
    axes::hand_over(c.axes(), yes, result);
  }
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(If, "") {
  op.since(1)
      .in("cond", "B")
      .out("outputs", "V", Arity::kVariadicMixed)
      .required("else_branch", ir::AttributeKind::kGraph)
      .required("then_branch", ir::AttributeKind::kGraph)
      .type("V", types::kAllTensors)
      .type("B", types::kBools);
  op.since(11);
  add_value_types(op);
  op.infer(infer_if).control(Control::kIf).axes(branch_axes);
}
