// Erf. Its first version takes integers too.

#include "kernels/convert.h"
#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

namespace {

// Integers are computed in double and truncated.
struct IntegerErf {
  kernels::TileConverter to_double, from_double;
  kernels::ElementwisePlan plan;
};

uint32_t run_integer_erf(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const IntegerErf*>(state);
  void* values = slots[operands[2]];
  kernels::convert(s.to_double, slots[operands[0]], values, s.plan.count);
  const void* inputs[] = {values};
  if (const uint32_t code = s.plan(inputs, values)) return code;
  kernels::convert(s.from_double, values, slots[operands[1]], s.plan.count);
  return 0;
}

Status prepare_erf(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  if (is_float(x.type)) return prepare_elementwise(ctx, kernels::ElementwiseOp::kErf);
  const auto count = static_cast<size_t>(x.element_count());
  auto* state = ctx.make_state<IntegerErf>();
  state->to_double = kernels::make_converter(x.type, ElementType::kDouble);
  state->from_double = kernels::make_converter(ElementType::kDouble, x.type);
  TREADLE_TRY(kernels::prepare_elementwise(&state->plan, kernels::ElementwiseOp::kErf, ElementType::kDouble, count, 0));
  ctx.scratch_bytes = count * sizeof(double);
  ctx.set_kernel(run_integer_erf, state);
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Erf, "") {
  op.since(9).in("input", "T").out("output", "T").type("T", types::kNumeric);
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_like_input).prepare(prepare_erf).elementwise();
}
