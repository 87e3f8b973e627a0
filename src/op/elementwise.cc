#include "op/elementwise.h"

#include <limits>

#include "op/op_def.h"
#include "op/parallel.h"
#include "op/resize.h"

namespace treadle {

namespace {

// Symbolic contents serve shapes and arithmetic on shapes, which have few elements.
constexpr int64_t kMaxSymbols = 64;

bool has_legacy_broadcast(const ir::Attributes& attributes) {
  return attributes.has("broadcast");
}

// The shape of A with B aligned at `axis`, as before opset 7.
Result<Shape> legacy_broadcast(const ir::Attributes& attributes, const Shape& a, const Shape& b) {
  const bool requested = attributes.get_int("broadcast") != 0;
  const auto a_rank = static_cast<int64_t>(a.size()), b_rank = static_cast<int64_t>(b.size());
  int64_t axis = attributes.get_int("axis", a_rank - b_rank);
  if (axis < 0) axis += a_rank;
  auto mismatch = [&] {
    return error(Code::kInvalidArgument, "B has shape {}, expected {} A, {}{}", to_string(b),
                 requested ? "sizes of" : "the shape of", to_string(a),
                 requested ? fmt::format(", from axis {} on", axis) : ", since attribute broadcast is not 1");
  };
  if (!requested) {
    if (a_rank != b_rank) return mismatch();
    axis = 0;
  }
  if (axis < 0 || axis + b_rank > a_rank) return mismatch();
  Shape out = a;
  for (int64_t i = 0; i < b_rank; ++i) {
    const Dim& x = a[static_cast<size_t>(axis + i)];
    const Dim& y = b[static_cast<size_t>(i)];
    if (requested && y.is_known(1)) continue;
    if (x.is_known() && y.is_known() && x.value() != y.value()) return mismatch();
    if (!x.is_known() && y.is_known()) out[static_cast<size_t>(axis + i)] = y;
  }
  return out;
}

// Says that a refusal is about operand `i` and those before it.
Status of_operands(const InferContext& ctx, size_t i, const Status& refused) {
  const auto name = [&](size_t k) {
    const Formal* formal = ctx.node.version->input(k);
    const bool counted = formal && formal->arity != Arity::kSingle && formal->arity != Arity::kOptional;
    return !formal || counted ? fmt::format("input {}", k) : formal->name;
  };
  const std::string before = i == 1 ? name(0) : fmt::format("the inputs before {}", name(i));
  return error(refused.code(), "{} and {}: {}", before, name(i), refused.message());
}

}  // namespace

// ---------------------------------------------------------------------------------------------------------------------

Status infer_like_input(InferContext& ctx) {
  if (ctx.has_input(0)) ctx.set_output(0, ctx.input(0));
  return {};
}

Status infer_predicate(InferContext& ctx) {
  if (const Shape* shape = ctx.shape(0)) {
    ctx.set_output(0, ElementType::kBool, *shape);
  } else {
    ctx.set_output(0, ElementType::kBool);
  }
  return {};
}

Status infer_broadcast_as(InferContext& ctx, ElementType element) {
  const Shape* first = ctx.shape(0);
  if (!first) {
    ctx.set_output(0, element);
    return {};
  }
  const bool legacy = has_legacy_broadcast(ctx.attributes());
  Shape out = *first;
  for (size_t i = 1; i < ctx.inputs.size(); ++i) {
    const Shape* other = ctx.shape(i);
    if (!other) {
      ctx.set_output(0, element);
      return {};
    }
    if (legacy) {
      TREADLE_ASSIGN(out, legacy_broadcast(ctx.attributes(), out, *other));
    } else {
      if (Status status = broadcast_into(out, *other); !status.ok()) return of_operands(ctx, i, status);
    }
  }
  ctx.set_output(0, element, std::move(out));
  return {};
}

Status infer_broadcast(InferContext& ctx) {
  return infer_broadcast_as(ctx, ctx.element(0));
}

Status infer_comparison(InferContext& ctx) {
  return infer_broadcast_as(ctx, ElementType::kBool);
}

bool wants_small_symbols(const InferContext& ctx) {
  if (!ctx.wants_symbols(0) || ctx.outputs.empty()) return false;
  const Type& out = ctx.outputs[0];
  if (out.element != ElementType::kInt64 && out.element != ElementType::kInt32 && out.element != ElementType::kBool) {
    return false;
  }
  return out.has_shape && out.rank() <= 1;
}

std::optional<Shape> small_dims(const InferContext& ctx, size_t i) {
  const Tensor* t = ctx.value(i);
  if (!t) return ctx.dims_value(i);
  if (t->rank() > 1 || t->element_count() > kMaxSymbols) return std::nullopt;
  if (t->type() != ElementType::kBool) return ctx.dims_value(i);
  Shape dims;
  for (int64_t k = 0; k < t->element_count(); ++k) dims.emplace_back(t->int64_at(k));
  return dims;
}

void infer_symbols(InferContext& ctx, DimFn fn) {
  if (!wants_small_symbols(ctx)) return;
  const std::optional<Shape> a = small_dims(ctx, 0);
  const std::optional<Shape> b = small_dims(ctx, 1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return;
  const size_t count = a->size() == 1 ? b->size() : a->size();
  Shape out;
  for (size_t i = 0; i < count; ++i) {
    Dim d = fn((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]);
    // Dim's arithmetic does not wrap as int32 does.
    const bool wraps =
        ctx.outputs[0].element == ElementType::kInt32 && d.is_known() && d.value() != static_cast<int32_t>(d.value());
    out.push_back(wraps ? Dim::unknown() : std::move(d));
  }
  ctx.set_output_symbols(0, std::move(out));
}

// ---------------------------------------------------------------------------------------------------------------------

Dims broadcast_strides(const Operand& operand, const Dims& result, int64_t axis) {
  const size_t rank = operand.dims.size();
  const size_t first = axis < 0 ? result.size() - rank : static_cast<size_t>(axis);
  Dims strides(result.size(), 0);
  for (size_t i = 0; i < rank; ++i) {
    if (operand.dims[i] != 1) strides[first + i] = operand.strides[i];
  }
  return strides;
}

int64_t legacy_axis(const PrepareContext& ctx) {
  if (ctx.attributes().get_int("broadcast") == 0) return -1;  // `axis` has no meaning then
  const int64_t a_rank = ctx.inputs[0].rank();
  const int64_t axis = ctx.attributes().get_int("axis", a_rank - ctx.inputs[1].rank());
  return axis < 0 ? axis + a_rank : axis;
}

namespace {

using kernels::ElementwiseOp;
using kernels::ElementwisePlan;

template <size_t kInputs>
uint32_t run_plan(const void* state, void* const* slots, const uint32_t* operands) {
  const void* inputs[kInputs];
  for (size_t i = 0; i < kInputs; ++i) inputs[i] = slots[operands[i]];
  return (*static_cast<const ElementwisePlan*>(state))(inputs, slots[operands[kInputs]]);
}

// One contiguous row: the kernel calls the row function directly.
struct RowState {
  kernels::Row row;
  size_t count;
  kernels::ElementwiseParams params;
  bool single[2] = {};     // by operand: it is one element
  size_t small_count = 0;  // after a resize, fewer elements than this; more may need several threads
};

uint32_t run_unary_row(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const RowState*>(state);
  return s.row(slots[operands[0]], nullptr, slots[operands[1]], s.count, &s.params);
}

uint32_t run_binary_row(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const RowState*>(state);
  return s.row(slots[operands[0]], slots[operands[1]], slots[operands[2]], s.count, &s.params);
}

// Work for several threads.
struct LargePlan {
  ElementwisePlan plan;
  double part_ns;
};

template <size_t kInputs>
uint32_t run_large_plan(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const LargePlan*>(state);
  const void* inputs[kInputs];
  for (size_t i = 0; i < kInputs; ++i) inputs[i] = slots[operands[i]];
  return parallel_kernel(s.plan.parts(), s.part_ns, [&](int64_t begin, int64_t end, int) {
    return s.plan.run_parts(inputs, slots[operands[kInputs]], begin, end);
  });
}

// The row function that does the whole plan by itself; null if there is none.
kernels::Row whole_row(const ElementwisePlan& plan) {
  const bool flat = plan.inputs <= 2 && plan.count > 0 && plan.outer_rank == 0 && plan.tile_mask == 0;
  return flat && plan.op != ElementwiseOp::kClip ? plan.row : nullptr;
}

bool one_element(const PrepareContext& ctx, size_t inputs) {
  for (size_t i = 0; i < inputs; ++i) {
    if (ctx.inputs[i].type != ctx.inputs[0].type) return false;
  }
  return ctx.outputs[0].element_count() == 1;
}

// Resizes a row. Each operand must still have all elements or one.
bool resize_row(void* state, ResizeContext& ctx) {
  auto& s = *static_cast<RowState*>(state);
  const Operand* full = &ctx.inputs[0];
  if (ctx.inputs.size() > 1 && s.single[0]) full = &ctx.inputs[1];
  const int64_t count = full->element_count();
  for (size_t i = 0; i < ctx.inputs.size(); ++i) {
    const Operand& in = ctx.inputs[i];
    if (in.rank() > full->rank() || !is_contiguous(in.dims, in.strides)) return false;
    if (s.single[i] ? in.element_count() != 1 : !(in.dims == full->dims)) return false;
  }
  if (count < 2 || static_cast<size_t>(count) >= s.small_count) return false;
  s.count = static_cast<size_t>(count);
  ctx.outputs[0].dims = full->dims;
  return true;
}

void set_row_kernel(PrepareContext& ctx, kernels::Row row, const ElementwisePlan& plan) {
  auto* state = ctx.make_state<RowState>(RowState{row, plan.count, plan.params});
  ctx.set_kernel(plan.inputs == 1 ? run_unary_row : run_binary_row, state, resize_row);
  const auto inputs = static_cast<size_t>(plan.inputs);
  if (ctx.inputs.size() != inputs || plan.count < 2) return;
  for (size_t i = 0; i < inputs; ++i) {
    state->single[i] = ctx.inputs[i].element_count() == 1;
    if (!state->single[i] && !(ctx.inputs[i].dims == ctx.outputs[0].dims)) return;
  }
  state->small_count = static_cast<size_t>(2 * kMinTeamNs * static_cast<double>(plan.count) / plan.ns);
}

void set_plan_kernel(PrepareContext& ctx, const ElementwisePlan* plan) {
  constexpr KernelFn kRun[] = {run_plan<1>, run_plan<2>, run_plan<3>};
  constexpr KernelFn kRunLarge[] = {run_large_plan<1>, run_large_plan<2>, run_large_plan<3>};
  ctx.cost_ns = plan->ns;
  if (ctx.cost_ns >= 2 * kMinTeamNs) {
    const double part_ns = ctx.cost_ns / static_cast<double>(plan->parts());
    ctx.set_kernel(kRunLarge[plan->inputs - 1], ctx.make_state<LargePlan>(LargePlan{*plan, part_ns}));
  } else if (const kernels::Row row = whole_row(*plan)) {
    set_row_kernel(ctx, row, *plan);
  } else {
    ctx.set_kernel(kRun[plan->inputs - 1], plan);
  }
}

}  // namespace

Status prepare_elementwise(PrepareContext& ctx, ElementwiseOp op, const kernels::ElementwiseParams& params) {
  return prepare_elementwise(ctx, op, params, legacy_axis(ctx));
}

Status prepare_elementwise(PrepareContext& ctx, ElementwiseOp op, const kernels::ElementwiseParams& params,
                           int64_t axis) {
  if (ctx.form) {
    ctx.form->kind = ElementwiseForm::Kind::kOperation;
    ctx.form->op = op;
    ctx.form->params = params;
    ctx.form->axis = axis;
    if (ctx.form_only) return {};
  }
  const size_t inputs = kernels::info(op).inputs;
  if (one_element(ctx, inputs)) {
    if (const KernelFn run = single_element_kernel(op, ctx.inputs[0].type)) {
      ctx.set_kernel(run, nullptr);
      return {};
    }
  }
  const Operand& out = ctx.outputs[0];
  Dims strides[3];
  kernels::ElementwiseOperand operands[3];
  for (size_t i = 0; i < inputs; ++i) {
    if (!ctx.has_input(i)) continue;
    strides[i] = broadcast_strides(ctx.inputs[i], out.dims, i == 1 ? axis : -1);
    operands[i] = {ctx.inputs[i].type, strides[i]};
  }
  auto* plan = ctx.make_state<ElementwisePlan>();
  TREADLE_TRY(
      kernels::prepare_elementwise(plan, op, out.dims, std::span(operands, inputs), {out.type, out.strides}, params));
  set_plan_kernel(ctx, plan);
  return {};
}

}  // namespace treadle
