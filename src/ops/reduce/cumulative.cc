// CumSum and CumProd.

#include "kernels/reduce.h"
#include "op/axis.h"
#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/work.h"

namespace treadle {

namespace {

// Sums known sizes, as in offsets from lengths.
void sum_symbols(InferContext& ctx) {
  if (!wants_small_symbols(ctx) || ctx.element(0) != ElementType::kInt64) return;
  std::optional<Shape> dims = small_dims(ctx, 0);
  if (!dims) return;
  const bool exclusive = ctx.attributes().get_int("exclusive") != 0;
  const bool reverse = ctx.attributes().get_int("reverse") != 0;
  Dim sum(int64_t{0});
  for (size_t i = 0; i < dims->size(); ++i) {
    Dim& d = (*dims)[reverse ? dims->size() - 1 - i : i];
    const Dim through = sum + d;
    d = exclusive ? sum : through;
    sum = through;
  }
  ctx.set_output_symbols(0, std::move(*dims));
}

Status infer_cumulative(InferContext& ctx) {
  TREADLE_TRY(infer_like_input(ctx));
  const std::optional<Shape> axis = ctx.dims_value(1);
  if (!axis || !ctx.shape(0)) return {};
  if (axis->size() != 1) {
    return error(Code::kInvalidArgument, "axis has {} elements, expected one", axis->size());
  }
  if ((*axis)[0].is_known()) TREADLE_TRY(normalize_axis((*axis)[0].value(), ctx.input(0).rank()).status());
  if (ctx.node.op->name == "CumSum" && ctx.input(0).rank() == 1) sum_symbols(ctx);
  return {};
}

struct CumulativeState {
  AxisView view;
  ElementType type;
  kernels::CumSumOptions options;
};

using CumulativeFn = decltype(&kernels::cum_sum);

template <CumulativeFn kFn>
uint32_t run_cumulative(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const CumulativeState*>(state);
  kFn(s.type, slots[operands[0]], slots[operands[2]], s.view.outer, s.view.n, s.view.inner, s.options);
  return 0;
}

template <CumulativeFn kFn>
Status prepare_cumulative(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const auto axes = ctx.int64s(1);
  if (axes.size() != 1) return error(Code::kInvalidArgument, "axis has {} elements, expected one", axes.size());
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(axes[0], x.rank()));
  const auto& a = ctx.attributes();
  const kernels::CumSumOptions options{a.get_int("exclusive") != 0, a.get_int("reverse") != 0};
  ctx.set_kernel(run_cumulative<kFn>,
                 ctx.make_state<CumulativeState>(CumulativeState{view_along(x.dims, axis), x.type, options}));
  return {};
}

struct DynamicCumulative {
  ElementType type{};
  bool wide = false;  // the axis is int64
  kernels::CumSumOptions options;
};

template <CumulativeFn kFn>
uint32_t run_dynamic_cumulative(const DynamicCumulative& s, DynamicCall& call) {
  const DynamicOperand& x = call.inputs[0];
  if (call.inputs[1].count != 1) return kNotDynamic;
  const auto axis = x.axis(index_at(call.inputs[1].data, s.wide, 0));
  if (!axis) return kNotDynamic;
  void* to = call.make(0, *x.dims);
  if (!to) return kNotDynamic;
  const AxisView view = view_along(*x.dims, static_cast<int64_t>(*axis));
  kFn(s.type, x.data, to, view.outer, view.n, view.inner, s.options);
  return 0;
}

template <CumulativeFn kFn>
DynamicKernel dynamic_cumulative(const DynamicContext& c) {
  const auto& a = c.attributes();
  const DynamicCumulative made{
      c.element(0), c.element(1) == ElementType::kInt64, {a.get_int("exclusive") != 0, a.get_int("reverse") != 0}};
  return dynamic_kernel<DynamicCumulative, run_dynamic_cumulative<kFn>>(c, made);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(CumProd, "") {
  op.since(26)
      .in("x", "T")
      .in("axis", "T2")
      .out("y", "T")
      .attr("exclusive", 0)
      .attr("reverse", 0)
      .type("T", types::kNumeric32Bf16)
      .type("T2", types::kIndices);
  op.infer(infer_cumulative)
      .prepare(prepare_cumulative<kernels::cum_prod>)
      .dynamic(dynamic_cumulative<kernels::cum_prod>)
      .shape_inputs({1})
      .axes(axes::along_axis_input, axes::shift_axis_input)
      .work(work::one_by_one);
}

TREADLE_OP(CumSum, "") {
  op.since(11)
      .in("x", "T")
      .in("axis", "T2")
      .out("y", "T")
      .attr("exclusive", 0)
      .attr("reverse", 0)
      .type("T", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kInt64, ElementType::kDouble,
                         ElementType::kUint32, ElementType::kUint64))
      .type("T2", types::kIndices);
  op.since(14).type("T", types::kNumeric32Bf16);
  op.infer(infer_cumulative)
      .prepare(prepare_cumulative<kernels::cum_sum>)
      .dynamic(dynamic_cumulative<kernels::cum_sum>)
      .shape_inputs({1})
      .axes(axes::along_axis_input, axes::shift_axis_input)
      .over_time(TimeRule::kPrefixSum)
      .work(work::one_by_one);
}
