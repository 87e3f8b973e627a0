#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"

namespace treadle::attention {

namespace {

// No broadcasting: both inputs have the same shape.
Status infer_swiglu(InferContext& ctx) {
  const Shape *a = ctx.shape(0), *b = ctx.shape(1);
  bool same = !a || !b || a->size() == b->size();
  for (size_t i = 0; same && a && b && i < a->size(); ++i) {
    same = !differ((*a)[i], (*b)[i]);
  }
  if (!same) {
    return error(Code::kInvalidArgument, "A and B have shapes {} and {}, expected equal ones", to_string(*a),
                 to_string(*b));
  }
  if (!a || !b) return infer_like_input(ctx);
  Shape out = *a;
  for (size_t i = 0; i < out.size(); ++i) {
    if ((*b)[i].is_known() || out[i].is_unknown()) out[i] = (*b)[i];
  }
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status lower_swiglu(LowerContext& ctx) {
  const float alpha = ctx.attributes().get_float("alpha", 1);
  ir::Value* gate = ctx.call("Swish", {ctx.input(0)}, {ir::Attribute::of("alpha", alpha)});
  ctx.set_output(0, ctx.call("Mul", {gate, ctx.input(1)}));
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(SwiGLU, "") {
  op.since(28).in("A", "T").in("B", "T").out("Y", "T").attr("alpha", 1.0).type("T", types::kFloatsBf16);
  op.infer(attention::infer_swiglu).lower(attention::lower_swiglu).axes(axes::broadcast, axes::aligned);
}
