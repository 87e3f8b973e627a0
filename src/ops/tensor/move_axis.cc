// MoveAxis moves one axis to another place, the others keeping their order. Loops are planned over axis 0; this brings
// other scan axes there and back, also where the rank is only known at run time.
#include "kernels/move.h"
#include "op/axis_rules.h"
#include "op/op_def.h"

namespace treadle {
namespace {

// For each axis of the result, the axis of the input it comes from.
Result<Dims> permutation(const ir::NodeInfo& node, int64_t rank) {
  TREADLE_ASSIGN(const int64_t from, normalize_axis(node.attributes.get_int("from"), rank, "from"));
  TREADLE_ASSIGN(const int64_t to, normalize_axis(node.attributes.get_int("to"), rank, "to"));
  Dims order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != from) order.push_back(i);
  }
  order.insert(static_cast<size_t>(to), from);
  return order;
}

Status infer_move_axis(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (!shape) return context.set_output(0, context.element(0)), Status();
  TREADLE_ASSIGN(const Dims order, permutation(context.node, static_cast<int64_t>(shape->size())));
  Shape out;
  for (int64_t axis : order) out.push_back((*shape)[static_cast<size_t>(axis)]);
  context.set_output(0, context.element(0), std::move(out));
  return {};
}

uint32_t run_copy(const void* state, void* const* slots, const uint32_t* operands) {
  (*static_cast<const kernels::CopyPlan*>(state))(slots[operands[0]], slots[operands[1]]);
  return 0;
}

Status prepare_move_axis(PrepareContext& context) {
  const Operand& in = context.inputs[0];
  TREADLE_ASSIGN(const Dims order, permutation(context.node, in.rank()));
  auto* plan = context.make_state<kernels::CopyPlan>();
  TREADLE_TRY(kernels::prepare_transpose(plan, byte_width(in.type), in.dims, order));
  context.set_kernel(run_copy, plan);
  return {};
}

Status compute_move_axis(ComputeContext& context) {
  const Tensor& in = context.tensor(0);  // strings
  TREADLE_ASSIGN(const Dims order, permutation(context.node, in.rank()));
  const Dims strides = contiguous_strides(in.dims());
  Dims dims, steps;
  for (int64_t axis : order) {
    dims.push_back(in.dims()[static_cast<size_t>(axis)]);
    steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  TREADLE_ASSIGN(Tensor * out, context.allocate(0, in.type(), dims));
  Dims index(dims.size());
  for (int64_t i = 0; i < out->element_count(); ++i) {
    int64_t from = 0;
    for (size_t d = 0; d < dims.size(); ++d) from += index[d] * steps[d];
    out->mutable_data<String>()[i] = in.data<String>()[from];
    for (size_t d = dims.size(); d-- > 0 && ++index[d] == dims[d];) index[d] = 0;
  }
  return {};
}

Status moved_axes(AxisContext& c) {
  const int64_t from = c.axis(c.rank(0), 0, "from"), to = c.axis(c.rank(0), 0, "to");
  if (c.in(0) == from) return c.give(0, to);
  const int64_t without = c.in(0) - (c.in(0) > from ? 1 : 0);
  return c.give(0, without + (without >= to ? 1 : 0));
}

Status widen_move(WidenContext& c) {
  for (const char* name : {"from", "to"}) {
    const int64_t axis = c.axis_attribute(name);
    c.set(ir::Attribute::of(name, axis < 0 ? axis : axis + 1));
  }
  return {};
}

}  // namespace
}  // namespace treadle

TREADLE_OP(MoveAxis, "treadle") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .required("from", ir::AttributeKind::kInt)
      .required("to", ir::AttributeKind::kInt)
      .type("T", types::kAllTensorsIr14);
  op.infer(infer_move_axis).prepare(prepare_move_axis).compute(compute_move_axis).axes(moved_axes, widen_move);
}
