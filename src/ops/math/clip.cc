// Clip: bounds are attributes before opset 11, and optional scalar inputs from then on (op/clip_bounds.h).

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/clip_bounds.h"
#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

namespace {

constexpr uint32_t kNoOperand = ~uint32_t{0};

struct ClipState {
  kernels::ElementwisePlan plan;
  // Operand numbers of the bounds. Bounds that are not operands are in `constants`, in x's type.
  uint32_t low = kNoOperand, high = kNoOperand, output = 0;
  bool has_low = false, has_high = false;
  alignas(8) std::byte constants[2][8];
};

uint32_t run_clip(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ClipState*>(state);
  const void* inputs[] = {slots[operands[0]],
                          s.low != kNoOperand ? slots[operands[s.low]]
                          : s.has_low         ? s.constants[0]
                                              : nullptr,
                          s.high != kNoOperand ? slots[operands[s.high]]
                          : s.has_high         ? s.constants[1]
                                               : nullptr};
  return s.plan(inputs, slots[operands[s.output]]);
}

Status infer_clip(InferContext& ctx) {
  for (size_t i = 1; i < 3; ++i) {
    const Shape* bound = ctx.shape(i);
    const Dim count = bound ? element_count(*bound) : Dim::unknown();
    if (count.is_known() && !count.is_known(1)) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected a scalar", i == 1 ? "min" : "max",
                   to_string(*bound));
    }
  }
  return infer_like_input(ctx);
}

Status prepare_clip(PrepareContext& ctx) {
  auto* state = ctx.make_state<ClipState>();
  const Operand& x = ctx.inputs[0];
  const Operand& out = ctx.outputs[0];
  const double left_out = clip_bound_left_out(x.type);
  auto bind_input = [&](uint32_t i, uint32_t& operand, double otherwise, std::byte* value, bool& has) {
    if (ctx.has_input(i)) operand = i;
    has = ctx.has_input(i) || left_out != 0;
    if (has && !ctx.has_input(i)) kernels::cast(ElementType::kDouble, x.type, &otherwise, value, 1);
  };
  auto bind_attribute = [&](const char* name, std::byte* value, bool& has) {
    const ir::Attribute* attribute = ctx.attributes().find(name);
    has = attribute != nullptr;
    const float bound = has ? attribute->as_float() : 0;
    if (has) kernels::cast(ElementType::kFloat, x.type, &bound, value, 1);
  };
  if (ctx.version() >= kClipTakesBoundsSince) {
    bind_input(1, state->low, -left_out, state->constants[0], state->has_low);
    bind_input(2, state->high, left_out, state->constants[1], state->has_high);
  } else {
    bind_attribute("min", state->constants[0], state->has_low);
    bind_attribute("max", state->constants[1], state->has_high);
  }
  state->output = static_cast<uint32_t>(ctx.inputs.size());
  const Dims x_strides = broadcast_strides(x, out.dims), scalar(out.dims.size(), 0);
  const kernels::ElementwiseOperand absent;
  const kernels::ElementwiseOperand bound{x.type, scalar};
  const kernels::ElementwiseOperand operands[] = {
      {x.type, x_strides}, state->has_low ? bound : absent, state->has_high ? bound : absent};
  TREADLE_TRY(kernels::prepare_elementwise(&state->plan, kernels::ElementwiseOp::kClip, out.dims, operands,
                                           {out.type, out.strides}));
  ctx.set_kernel(run_clip, state);
  return {};
}

// Min(Max(x, low), high), if the bounds are inputs.
bool expand_clip(LowerContext& ctx) {
  const Type& x = ctx.type(0);
  if (ctx.version() < kClipTakesBoundsSince) return false;
  const double left_out = clip_bound_left_out(x.element);
  ir::Value* result = ctx.input(0);
  for (const size_t i : {1, 2}) {
    if (!ctx.has_input(i) && left_out == 0) continue;
    // [1] with a scalar x would change the rank
    if (ctx.has_input(i) && ctx.type(i).shape.size() > x.shape.size()) return false;
    ir::Value* bound = ctx.has_input(i) ? ctx.input(i) : ctx.number(i == 1 ? -left_out : left_out, x.element);
    result = ctx.call(i == 1 ? "Max" : "Min", {result, bound});
  }
  ctx.set_output(0, result);
  return result != ctx.input(0);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Clip, "") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .optional("max", ir::AttributeKind::kFloat)
      .optional("min", ir::AttributeKind::kFloat)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs").attr("max", 3.4028235e+38).attr("min", -3.4028235e+38);
  op.since(11).in("min", "T", Arity::kOptional).in("max", "T", Arity::kOptional).drop_attr("max").drop_attr("min");
  op.since(12).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  op.infer(infer_clip)
      .prepare(prepare_clip)
      .strided_inputs({0})
      .axes(axes::element_by_element, axes::unchanged)
      .expand_in_loops(expand_clip);
}
