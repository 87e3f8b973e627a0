// Max, Min, Sum and Mean of any number of operands.

#include "kernels/convert.h"
#include "kernels/move.h"
#include "op/elementwise_records.h"
#include "op/small_contents.h"

namespace treadle {

namespace {

using kernels::ElementwiseOp;
using kernels::ElementwiseOperand;
using kernels::ElementwisePlan;

template <DimFn kFn>
Status infer_extreme(InferContext& ctx) {
  TREADLE_TRY(infer_broadcast(ctx));
  if (ctx.inputs.size() == 2) {
    infer_symbols(ctx, kFn);
    infer_real_symbols(ctx, kFn);
  }
  if (ctx.inputs.size() == 1 && wants_small_symbols(ctx)) {
    if (std::optional<Shape> dims = small_dims(ctx, 0)) ctx.set_output_symbols(0, std::move(*dims));
  }
  return {};
}

// acc = x0 op x1; acc = acc op x2; ... Narrow types keep acc in a wide type, in scratch, until the last step.
struct FoldState {
  InlineVector<ElementwisePlan, 2> steps;
  size_t inputs = 0;
  bool wide = false;
  ElementwisePlan divide;  // Mean: divides by the number of inputs
  bool has_divide = false;
  alignas(8) std::byte divisor[8];
};

uint32_t run_fold(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const FoldState*>(state);
  void* out = slots[operands[s.inputs]];
  void* acc = s.wide ? slots[operands[s.inputs + 1]] : out;
  const void* left = slots[operands[0]];
  for (size_t i = 0; i < s.steps.size(); ++i) {
    const bool last = i + 1 == s.steps.size() && !s.has_divide;
    const void* inputs[] = {left, slots[operands[i + 1]]};
    s.steps[i](inputs, last ? out : acc);
    left = acc;
  }
  if (s.has_divide) {
    const void* inputs[] = {left, s.divisor};
    s.divide(inputs, out);
  }
  return 0;
}

Status prepare_steps(PrepareContext& ctx, ElementwiseOp op, size_t count, FoldState& state) {
  const Operand& out = ctx.outputs[0];
  const ElementType wide = wide_type(out.type);
  Dims left_strides = broadcast_strides(ctx.inputs[0], out.dims);
  ElementType left = ctx.inputs[0].type;
  for (size_t i = 1; i < count; ++i) {
    const bool last = i + 1 == count && !state.has_divide;
    const ElementType result = last ? out.type : wide;
    const Dims right_strides = broadcast_strides(ctx.inputs[i], out.dims);
    const ElementwiseOperand operands[] = {{left, left_strides}, {ctx.inputs[i].type, right_strides}};
    TREADLE_TRY(
        kernels::prepare_elementwise(&state.steps.emplace_back(), op, out.dims, operands, {result, out.strides}));
    left = result;
    left_strides = out.strides;
  }
  return {};
}

Status prepare_many(PrepareContext& ctx, ElementwiseOp op, bool mean) {
  const Operand& out = ctx.outputs[0];
  const ElementType wide = wide_type(out.type);
  auto* state = ctx.make_state<FoldState>();
  state->inputs = ctx.inputs.size();
  state->has_divide = mean;
  state->wide = wide != out.type && (mean || state->inputs > 2);
  if (state->wide) ctx.scratch_bytes = static_cast<size_t>(out.element_count()) * byte_width(wide);
  TREADLE_TRY(prepare_steps(ctx, op, state->inputs, *state));
  if (mean) {
    const auto n = static_cast<int64_t>(state->inputs);
    kernels::cast(ElementType::kInt64, wide, &n, state->divisor, 1);
    const Dims scalar(out.dims.size(), 0);
    const ElementwiseOperand operands[] = {{wide, out.strides}, {wide, scalar}};
    TREADLE_TRY(
        kernels::prepare_elementwise(&state->divide, ElementwiseOp::kDiv, out.dims, operands, {out.type, out.strides}));
  }
  ctx.set_kernel(run_fold, state);
  return {};
}

uint32_t run_copy(const void* state, void* const* slots, const uint32_t* operands) {
  (*static_cast<const kernels::CopyPlan*>(state))(slots[operands[0]], slots[operands[1]]);
  return 0;
}

Status prepare_one(PrepareContext& ctx) {
  const Operand& out = ctx.outputs[0];
  auto* plan = ctx.make_state<kernels::CopyPlan>();
  TREADLE_TRY(kernels::prepare_copy(plan, byte_width(out.type), out.dims, ctx.inputs[0].strides, out.strides));
  ctx.set_kernel(run_copy, plan);
  return {};
}

template <ElementwiseOp kOp>
Status prepare_fold(PrepareContext& ctx) {
  if (ctx.inputs.size() == 1) return prepare_one(ctx);
  if (ctx.inputs.size() == 2) return prepare_elementwise(ctx, kOp);
  return prepare_many(ctx, kOp, false);
}

Status prepare_mean(PrepareContext& ctx) {
  if (ctx.inputs.size() == 1) return prepare_one(ctx);
  return prepare_many(ctx, ElementwiseOp::kAdd, true);
}

// More than two operands are combined two at a time, in their order. Not for narrow sums, which kernels round only
// once.
ir::Value* expand_fold(LowerContext& ctx, std::string_view op) {
  const bool rounds = op == "Sum" && !is_stored_as_computed(ctx.type(0).element);
  if (ctx.input_count() <= 2 || rounds) return nullptr;
  ir::Value* acc = ctx.input(0);
  for (size_t i = 1; i < ctx.input_count(); ++i) acc = ctx.call(op, {acc, ctx.input(i)});
  return acc;
}

bool expand_many(LowerContext& ctx) {
  ir::Value* result = expand_fold(ctx, ctx.node().op->name);
  ctx.set_output(0, result);
  return result != nullptr;
}

// The sum divided by the number of inputs.
bool expand_mean(LowerContext& ctx) {
  ir::Value* sum = expand_fold(ctx, "Sum");
  if (!sum) return false;
  ctx.set_output(0, ctx.call("Div", {sum, ctx.number(static_cast<double>(ctx.input_count()), ctx.type(0).element)}));
  return true;
}

// The first versions of y = f(x0, x1, ...).
void fold_from_1_to_8(OpBuilder& op, const char* y) {
  op.since(1)
      .in("data_0", "T", Arity::kVariadic)
      .out(y, "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(8);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(Max, "") {
  fold_from_1_to_8(op, "max");
  op.since(12).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  binary(op, prepare_fold<kernels::ElementwiseOp::kMax>, infer_extreme<max>).expand(expand_many);
}

TREADLE_OP(Mean, "") {
  fold_from_1_to_8(op, "mean");
  op.since(13).type("T", types::kFloatsBf16);
  op.infer(infer_broadcast).prepare(prepare_mean).elementwise().expand(expand_mean);
}

TREADLE_OP(Min, "") {
  fold_from_1_to_8(op, "min");
  op.since(12).type("T", types::kNumeric);
  op.since(13).type("T", types::kNumericBf16);
  binary(op, prepare_fold<kernels::ElementwiseOp::kMin>, infer_extreme<min>).expand(expand_many);
}

TREADLE_OP(Sum, "") {
  fold_from_1_to_8(op, "sum");
  op.since(13).type("T", types::kFloatsBf16);
  binary(op, prepare_fold<kernels::ElementwiseOp::kAdd>, infer_broadcast).expand(expand_many);
}
