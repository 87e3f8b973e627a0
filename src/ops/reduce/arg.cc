// ArgMax and ArgMin: the position of the extreme.

#include <fmt/format.h>

#include "kernels/reduce.h"
#include "op/axis.h"
#include "op/axis_rules.h"
#include "op/dynamic_kernel.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/size_rules.h"
#include "op/sizes.h"
#include "op/work.h"

namespace treadle {

namespace {

Status infer_arg(InferContext& ctx) {
  const Shape* shape = ctx.shape(0);
  if (!shape) {
    ctx.set_output(0, ElementType::kInt64);
    return {};
  }
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(ctx.attributes().get_int("axis"), ctx.input(0).rank()));
  const auto at = static_cast<size_t>(axis);
  if ((*shape)[at].is_known(0)) {
    return error(Code::kInvalidArgument,
                 "no element is extreme along axis {} of {}: it is empty, expected at least one element", axis,
                 to_string(*shape));
  }
  DimSizes sizes;
  Shape out;
  const bool keep = ctx.attributes().get_int("keepdims", 1) != 0;
  size_rules::reduce(sizes, *shape, [&](size_t d) { return d == at; }, keep, out);
  ctx.set_output(0, ElementType::kInt64, std::move(out));
  return {};
}

struct ArgState {
  AxisView view;
  ElementType type;
  bool select_last;
};

using ArgFn = decltype(&kernels::arg_max);

template <ArgFn kFn>
uint32_t run_arg(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ArgState*>(state);
  kFn(s.type, slots[operands[0]], static_cast<int64_t*>(slots[operands[1]]), s.view.outer, s.view.n, s.view.inner,
      s.select_last);
  return 0;
}

template <ArgFn kFn>
Status prepare_arg(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(const int64_t axis, normalize_axis(ctx.attributes().get_int("axis"), x.rank()));
  const bool last = ctx.attributes().get_int("select_last_index") != 0;
  if (ctx.form) {
    const AxisView view = view_along(x.dims, axis);
    ctx.form->kind = ElementwiseForm::Kind::kArgReduction;
    ctx.form->arg_reduction = {static_cast<int64_t>(view.outer), static_cast<int64_t>(view.n),
                               static_cast<int64_t>(view.inner), kFn == kernels::arg_max, last};
    if (ctx.form_only) return {};
  }
  ctx.set_kernel(run_arg<kFn>, ctx.make_state<ArgState>(ArgState{view_along(x.dims, axis), x.type, last}));
  return {};
}

struct DynamicArg {
  int64_t axis = 0;
  ElementType type{};
  bool keep = true, last = false;
};

template <ArgFn kFn>
uint32_t run_dynamic_arg(const DynamicArg& s, DynamicCall& call) {
  const DynamicOperand& x = call.inputs[0];
  const auto axis = x.axis(s.axis);
  if (!axis || x.size(*axis) == 0) return kNotDynamic;
  NumberSizes sizes;
  Dims dims;
  size_rules::reduce(sizes, *x.dims, [&](size_t d) { return d == *axis; }, s.keep, dims);
  auto* to = static_cast<int64_t*>(call.make(0, dims));
  if (!to) return kNotDynamic;
  const AxisView view = view_along(*x.dims, static_cast<int64_t>(*axis));
  kFn(s.type, x.data, to, view.outer, view.n, view.inner, s.last);
  return 0;
}

template <ArgFn kFn>
DynamicKernel dynamic_arg(const DynamicContext& c) {
  const auto& a = c.attributes();
  const DynamicArg made{a.get_int("axis"), c.element(0), a.get_int("keepdims", 1) != 0,
                        a.get_int("select_last_index") != 0};
  return dynamic_kernel<DynamicArg, run_dynamic_arg<kFn>>(c, made);
}

Status searched_axes(AxisContext& c) {
  const int64_t axis = c.axis(c.rank(0), 0);
  if (axis == c.in(0)) return looks_along(fmt::format("it searches axis {}", axis));
  const bool drops = c.attributes().get_int("keepdims", 1) == 0 && axis < c.in(0);
  return c.give(0, c.in(0) - (drops ? 1 : 0));
}

template <ArgFn kFn>
void define_arg(OpBuilder& op) {
  op.since(1)
      .in("data", "T")
      .out("reduced", "tensor(int64)")
      .attr("axis", 0)
      .attr("keepdims", 1)
      .type("T", types::kNumeric);
  op.since(11);
  op.since(12).attr("select_last_index", 0);
  op.since(13).type("T", types::kNumericBf16);
  op.infer(infer_arg)
      .prepare(prepare_arg<kFn>)
      .dynamic(dynamic_arg<kFn>)
      .sizes(SizeRule::kReduce)
      .axes(searched_axes, axes::shift_axis)
      .work(work::positions);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(ArgMax, "") {
  define_arg<kernels::arg_max>(op);
}

TREADLE_OP(ArgMin, "") {
  define_arg<kernels::arg_min>(op);
}
