// The reductions. Axes are an attribute in old versions and an optional input in later ones.

#include "kernels/reduce.h"

#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/size_rules.h"
#include "op/sizes.h"
#include "op/work.h"

namespace treadle {

namespace {

using Axes = InlineVector<int64_t, 8>;
using Reduced = InlineVector<bool, 8>;  // by dimension

// Marks the dimensions that `axes` names. No axes: all dimensions, or none with noop_with_empty_axes.
Result<Reduced> reduced_dimensions(const ir::Attributes& attributes, std::span<const int64_t> axes, size_t rank) {
  Reduced reduced(rank, axes.empty() && attributes.get_int("noop_with_empty_axes") == 0);
  for (int64_t axis : axes) {
    TREADLE_ASSIGN(const int64_t d, normalize_axis(axis, static_cast<int64_t>(rank), "axes"));
    reduced[static_cast<size_t>(d)] = true;
  }
  return reduced;
}

// The axes of the node; nullopt if they are an input of unknown contents.
std::optional<Axes> known_axes(const InferContext& ctx) {
  if (!ctx.has_input(1)) {
    const auto axes = ctx.attributes().get_ints("axes");
    return Axes(axes.begin(), axes.end());
  }
  const std::optional<Shape> dims = ctx.dims_value(1);
  if (!dims || !is_known(*dims)) return std::nullopt;
  Axes axes;
  for (const Dim& d : *dims) axes.push_back(d.value());
  return axes;
}

Status infer_reduce(InferContext& ctx) {
  const ElementType element = ctx.element(0);
  const Shape* shape = ctx.shape(0);
  const bool keep = ctx.attributes().get_int("keepdims", 1) != 0;
  if (!shape) {
    ctx.set_output(0, element);
    return {};
  }
  const std::optional<Axes> axes = known_axes(ctx);
  if (!axes) {
    if (keep) {
      ctx.set_output(0, element, Shape(shape->size()));
    } else {
      ctx.set_output(0, element);
    }
    return {};
  }
  TREADLE_ASSIGN(const Reduced reduced, reduced_dimensions(ctx.attributes(), *axes, shape->size()));
  DimSizes sizes;
  Shape out;
  size_rules::reduce(sizes, *shape, [&](size_t d) { return reduced[d]; }, keep, out);
  ctx.set_output(0, element, std::move(out));
  return {};
}

Dim add(const Dim& a, const Dim& b) {
  return a + b;
}
Dim multiply(const Dim& a, const Dim& b) {
  return a * b;
}

// Also folds elements of a shape ("number of elements" is ReduceProd of Shape).
template <DimFn kFn>
Status infer_and_fold(InferContext& ctx) {
  TREADLE_TRY(infer_reduce(ctx));
  if (!wants_small_symbols(ctx) || ctx.input(0).rank() != 1 || ctx.outputs[0].rank() > 1) return {};
  const std::optional<Axes> axes = known_axes(ctx);
  const std::optional<Shape> dims = small_dims(ctx, 0);
  if (!axes || !dims || dims->empty() || ctx.element(0) != ElementType::kInt64) return {};
  if (axes->empty() && ctx.attributes().get_int("noop_with_empty_axes") != 0) return {};
  Dim folded = (*dims)[0];
  for (size_t i = 1; i < dims->size(); ++i) folded = kFn(folded, (*dims)[i]);
  ctx.set_output_symbols(0, Shape{folded});
  return {};
}

// ---------------------------------------------------------------------------------------------------------------------

struct ReduceState {
  kernels::ReducePlan plan;
  size_t output = 0;  // operand number of the result
  double part_ns = 0;
};

uint32_t run_reduce(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ReduceState*>(state);
  parallel_for(static_cast<int64_t>(s.plan.parts()), s.part_ns, [&](int64_t begin, int64_t end, int) {
    s.plan.run_parts(slots[operands[0]], slots[operands[s.output]], static_cast<size_t>(begin),
                     static_cast<size_t>(end));
  });
  return 0;
}

template <kernels::ReduceOp kOp>
Status prepare_reduce(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  Axes axes;
  if (ctx.has_input(1)) {
    axes = ctx.int64s(1);
  } else {
    const auto given = ctx.attributes().get_ints("axes");
    axes.assign(given.begin(), given.end());
  }
  TREADLE_ASSIGN(const Reduced reduced, reduced_dimensions(ctx.attributes(), axes, x.dims.size()));
  auto* state = ctx.make_state<ReduceState>();
  state->output = ctx.inputs.size();
  TREADLE_TRY(kernels::prepare_reduce(&state->plan, kOp, x.type, x.dims, reduced));
  if (ctx.form) {
    ctx.form->kind = ElementwiseForm::Kind::kReduction;
    ctx.form->reduction = &state->plan;
    if (ctx.form_only) return {};
  }
  ctx.cost_ns = 0.2 * static_cast<double>(x.element_count());
  state->part_ns = ctx.cost_ns / static_cast<double>(std::max<size_t>(state->plan.parts(), 1));
  ctx.set_kernel(run_reduce, state);
  return {};
}

struct DynamicReduce {
  kernels::ReducePlan plan;  // without sizes
  bool all = true;           // without axes, whether all dimensions are reduced or none
  bool keep = true;
  Axes axes;  // in versions with axes as an attribute
};

// reduced_dimensions() for the sizes at hand. False if the axes are wrong.
bool find_reduced(const DynamicReduce& s, const DynamicCall& call, std::span<bool> reduced) {
  std::span<const int64_t> axes = s.axes;
  if (call.has(1)) {
    const DynamicOperand& given = call.inputs[1];
    if (given.rank() != 1) return false;
    axes = {static_cast<const int64_t*>(given.data), static_cast<size_t>(given.count)};
  }
  std::ranges::fill(reduced, axes.empty() && s.all);
  const auto rank = static_cast<int64_t>(reduced.size());
  for (const int64_t axis : axes) {
    if (axis < -rank || axis >= rank) return false;
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return true;
}

uint32_t run_dynamic_reduce(const DynamicReduce& s, DynamicCall& call) {
  constexpr size_t kMostRank = 8;
  const DynamicOperand& x = call.inputs[0];
  const size_t rank = x.dims->size();
  bool flags[kMostRank];
  const std::span<bool> reduced{flags, std::min(rank, kMostRank)};
  if (rank > kMostRank || !find_reduced(s, call, reduced)) return kNotDynamic;
  NumberSizes sizes;
  Dims dims;
  size_rules::reduce(sizes, *x.dims, [&](size_t d) { return reduced[d]; }, s.keep, dims);
  kernels::ReducePlan plan = s.plan;
  if (!kernels::size_reduce(&plan, *x.dims, reduced).ok()) return kNotDynamic;
  void* to = call.make(0, dims);
  if (!to) return kNotDynamic;
  plan(x.data, to);
  return 0;
}

template <kernels::ReduceOp kOp>
DynamicKernel dynamic_reduce(const DynamicContext& c) {
  const ir::Attributes& a = c.attributes();
  DynamicReduce made{{}, a.get_int("noop_with_empty_axes") == 0, a.get_int("keepdims", 1) != 0, {}};
  if (!kernels::begin_reduce(&made.plan, kOp, c.element(0)).ok()) return {};
  const auto axes = a.get_ints("axes");
  made.axes.assign(axes.begin(), axes.end());
  return dynamic_kernel<DynamicReduce, run_dynamic_reduce>(c, std::move(made));
}

// The node's axes as an input of the newest version; null if none are given. nullopt: it reduces nothing, or axes are
// unknown before the run.
std::optional<ir::Value*> axes_input(LowerContext& ctx) {
  const auto given = ctx.attributes().get_ints("axes");
  const Tensor* contents = ctx.has_input(1) ? ctx.value(1) : nullptr;
  if (ctx.has_input(1) && !contents) return std::nullopt;
  const int64_t count = contents ? contents->element_count() : static_cast<int64_t>(given.size());
  if (count > 0) return contents ? ctx.input(1) : ctx.constant(Tensor::of_int64(given));
  if (ctx.attributes().get_int("noop_with_empty_axes") != 0) return std::nullopt;
  return nullptr;
}

// `op` over the axes. `keep`: they stay with size 1.
ir::Value* reduce_over(LowerContext& ctx, std::string_view op, ir::Value* x, ir::Value* axes, bool keep) {
  return ctx.call(op, {x, axes}, {ir::Attribute::of("keepdims", int64_t{keep})});
}

bool is_plain_float(ElementType type) {
  return type == ElementType::kFloat || type == ElementType::kDouble;
}

// Log(ReduceSum(x))
bool expand_log_sum(LowerContext& ctx) {
  const auto axes = axes_input(ctx);
  if (!axes || !is_plain_float(ctx.type(0).element)) return false;
  const bool keep = ctx.attributes().get_int("keepdims", 1) != 0;
  ctx.set_output(0, ctx.call("Log", {reduce_over(ctx, "ReduceSum", ctx.input(0), *axes, keep)}));
  return true;
}

// m = ReduceMax(x), or 0 where that is infinite;  m + Log(ReduceSum(Exp(x - m))). This rounds more often than the
// kernel.
bool expand_log_sum_exp(LowerContext& ctx) {
  const auto axes = axes_input(ctx);
  const ElementType type = ctx.type(0).element;
  if (!axes || !is_plain_float(type) || element_count(ctx.type(0).shape).is_known(0)) return false;
  ir::Value* most = reduce_over(ctx, "ReduceMax", ctx.input(0), *axes, true);
  ir::Value* shift = ctx.call("Where", {ctx.call("IsInf", {most}), ctx.number(0, type), most});
  ir::Value* powers = ctx.call("Exp", {ctx.call("Sub", {ctx.input(0), shift})});
  ir::Value* log = ctx.call("Log", {reduce_over(ctx, "ReduceSum", powers, *axes, true)});
  ir::Value* result = ctx.call("Add", {log, shift});
  if (ctx.attributes().get_int("keepdims", 1) == 0) result = ctx.call("Squeeze", {result, *axes});
  ctx.set_output(0, result);
  return true;
}

// --- records of reductions

constexpr TypeSet kReducibleOrBool =
    tensors(ElementType::kFloat, ElementType::kUint8, ElementType::kInt8, ElementType::kInt32, ElementType::kInt64,
            ElementType::kBool, ElementType::kFloat16, ElementType::kDouble, ElementType::kUint32, ElementType::kUint64,
            ElementType::kBfloat16);

// The first versions. Later ones differ in types, and have axes as an input.
void begin_reduction(OpBuilder& op) {
  op.since(1)
      .in("data", "T")
      .out("reduced", "T")
      .optional("axes", ir::AttributeKind::kInts)
      .attr("keepdims", 1)
      .type("T", types::kNumeric32);
  op.since(11);
}

VersionBuilder axes_as_input(VersionBuilder version) {
  return version.in("axes", "tensor(int64)", Arity::kOptional).drop_attr("axes").attr("noop_with_empty_axes", 0);
}

template <kernels::ReduceOp kOp>
OpBuilder& end_reduction(OpBuilder& op, InferFn infer) {
  return op.infer(infer)
      .prepare(prepare_reduce<kOp>)
      .dynamic(dynamic_reduce<kOp>)
      .reduction(kOp)
      .shape_inputs({1})
      .axes(axes::reduced, axes::shift_axes)
      .work(work::reduction);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(ReduceL1, "") {
  begin_reduction(op);
  op.since(13).type("T", types::kNumeric32Bf16);
  axes_as_input(op.since(18));
  end_reduction<kernels::ReduceOp::kL1>(op, infer_reduce);
}

TREADLE_OP(ReduceL2, "") {
  begin_reduction(op);
  op.since(13).type("T", types::kNumeric32Bf16);
  axes_as_input(op.since(18));
  end_reduction<kernels::ReduceOp::kL2>(op, infer_reduce);
}

TREADLE_OP(ReduceLogSum, "") {
  begin_reduction(op);
  op.since(13).type("T", types::kNumeric32Bf16);
  axes_as_input(op.since(18));
  op.since(28).type("T", types::kFloatsBf16);
  end_reduction<kernels::ReduceOp::kLogSum>(op, infer_reduce).expand_in_loops(expand_log_sum);
}

TREADLE_OP(ReduceLogSumExp, "") {
  begin_reduction(op);
  op.since(13).type("T", types::kNumeric32Bf16);
  axes_as_input(op.since(18));
  op.since(28).type("T", types::kFloatsBf16);
  end_reduction<kernels::ReduceOp::kLogSumExp>(op, infer_reduce)
      .work(work::functions_of_input)
      .expand_in_loops(expand_log_sum_exp);
}

TREADLE_OP(ReduceMax, "") {
  begin_reduction(op);
  op.since(12).type("T", types::kReducible8);
  op.since(13).type("T", types::kReducible8Bf16);
  axes_as_input(op.since(18));
  op.since(20).type("T", kReducibleOrBool);
  end_reduction<kernels::ReduceOp::kMax>(op, infer_and_fold<max>);
}

TREADLE_OP(ReduceMean, "") {
  begin_reduction(op);
  op.since(13).type("T", types::kNumeric32Bf16);
  axes_as_input(op.since(18));
  end_reduction<kernels::ReduceOp::kMean>(op, infer_reduce);
}

TREADLE_OP(ReduceMin, "") {
  begin_reduction(op);
  op.since(12).type("T", types::kReducible8);
  op.since(13).type("T", types::kReducible8Bf16);
  axes_as_input(op.since(18));
  op.since(20).type("T", kReducibleOrBool);
  end_reduction<kernels::ReduceOp::kMin>(op, infer_and_fold<min>);
}

TREADLE_OP(ReduceProd, "") {
  begin_reduction(op);
  op.since(13).type("T", types::kNumeric32Bf16);
  axes_as_input(op.since(18));
  end_reduction<kernels::ReduceOp::kProd>(op, infer_and_fold<multiply>);
}

TREADLE_OP(ReduceSum, "") {
  begin_reduction(op);
  axes_as_input(op.since(13)).type("T", types::kNumeric32Bf16);
  end_reduction<kernels::ReduceOp::kSum>(op, infer_and_fold<add>);
}

TREADLE_OP(ReduceSumSquare, "") {
  begin_reduction(op);
  op.since(13).type("T", types::kNumeric32Bf16);
  axes_as_input(op.since(18));
  end_reduction<kernels::ReduceOp::kSumSquare>(op, infer_reduce);
}
