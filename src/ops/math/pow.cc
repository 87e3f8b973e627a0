// Pow: base and exponent may differ in type; the result has the base's.

#include "kernels/convert.h"
#include "op/elementwise.h"
#include "op/op_def.h"

namespace treadle {

namespace {

using kernels::ElementwiseOp;
using kernels::ElementwisePlan;

Dim power(const Dim& base, const Dim& exponent) {
  constexpr int64_t kMost = 8;
  if (!exponent.is_known() || exponent.value() < 0 || exponent.value() > kMost) return {};
  Dim product = 1;
  for (int64_t i = 0; i < exponent.value(); ++i) product = product * base;
  return product;
}

// Most powers in models are squares.
bool is_constant_two(const Operand& exponent) {
  if (!exponent.constant || exponent.element_count() != 1) return false;
  double value = 0;
  kernels::cast(exponent.type, ElementType::kDouble, exponent.constant, &value, 1);
  return value == 2;
}

uint32_t run_square(const void* state, void* const* slots, const uint32_t* operands) {
  const void* inputs[] = {slots[operands[0]], slots[operands[0]]};
  return (*static_cast<const ElementwisePlan*>(state))(inputs, slots[operands[2]]);
}

Status prepare_square(PrepareContext& ctx) {
  if (ctx.form) {
    ctx.form->kind = ElementwiseForm::Kind::kOperation;
    ctx.form->op = ElementwiseOp::kMul;
    ctx.form->arguments[1] = 0;
    if (ctx.form_only) return {};
  }
  const Operand& x = ctx.inputs[0];
  const Operand& out = ctx.outputs[0];
  const Dims strides = broadcast_strides(x, out.dims);
  const kernels::ElementwiseOperand operands[] = {{x.type, strides}, {x.type, strides}};
  auto* plan = ctx.make_state<ElementwisePlan>();
  TREADLE_TRY(kernels::prepare_elementwise(plan, ElementwiseOp::kMul, out.dims, operands, {out.type, out.strides}));
  ctx.set_kernel(run_square, plan);
  return {};
}

// An integer base with a floating-point exponent: computed in double, truncated.
struct FractionState {
  kernels::TileConverter to_double;
  size_t base_count;
  ElementwisePlan plan;
};

uint32_t run_fraction(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const FractionState*>(state);
  void* base = slots[operands[3]];
  kernels::convert(s.to_double, slots[operands[0]], base, s.base_count);
  const void* inputs[] = {base, slots[operands[1]]};
  return s.plan(inputs, slots[operands[2]]);
}

Status prepare_fraction(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const Operand& y = ctx.inputs[1];
  const Operand& out = ctx.outputs[0];
  auto* state = ctx.make_state<FractionState>();
  state->to_double = kernels::make_converter(x.type, ElementType::kDouble);
  state->base_count = static_cast<size_t>(x.element_count());
  ctx.scratch_bytes = state->base_count * sizeof(double);
  const Dims x_strides = broadcast_strides(x, out.dims), y_strides = broadcast_strides(y, out.dims);
  const kernels::ElementwiseOperand operands[] = {{ElementType::kDouble, x_strides}, {y.type, y_strides}};
  TREADLE_TRY(
      kernels::prepare_elementwise(&state->plan, ElementwiseOp::kPow, out.dims, operands, {out.type, out.strides}));
  ctx.set_kernel(run_fraction, state);
  return {};
}

Status prepare_pow(PrepareContext& ctx) {
  if (is_constant_two(ctx.inputs[1])) return prepare_square(ctx);
  if (is_integer(ctx.inputs[0].type) && is_float(ctx.inputs[1].type)) return prepare_fraction(ctx);
  return prepare_elementwise(ctx, ElementwiseOp::kPow);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Pow, "") {
  op.since(1)
      .in("X", "T")
      .in("Y", "T")
      .out("Z", "T")
      .optional("axis", ir::AttributeKind::kInt)
      .attr("broadcast", 0)
      .type("T", types::kFloats);
  op.since(7).drop_attr("axis").drop_attr("broadcast");
  op.since(12)
      .in("Y", "T1")
      .type("T", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kInt64, ElementType::kFloat16,
                         ElementType::kDouble))
      .type("T1", types::kNumeric);
  op.since(13).type("T", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kInt64, ElementType::kFloat16,
                                 ElementType::kDouble, ElementType::kBfloat16));
  op.since(15).type("T1", types::kNumericBf16);
  op.infer(infer_arithmetic<power>).prepare(prepare_pow).strided_inputs({1}).elementwise();
}
