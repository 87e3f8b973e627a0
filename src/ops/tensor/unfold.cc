// UnfoldTensor: the slices of `size` along an axis, `step` apart, along one more axis behind the others.

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/tensor/copy.h"

namespace treadle {

namespace {

Result<size_t> unfolded_axis(const ir::Attributes& attributes, int64_t rank) {
  const int64_t axis = attributes.get_int("dim");
  if (axis < -rank || axis >= rank) {
    return error(Code::kInvalidModel, "attribute dim is {}, expected {} to {}", axis, -rank, rank - 1);
  }
  return static_cast<size_t>(axis < 0 ? axis + rank : axis);
}

Status infer_unfold(InferContext& ctx) {
  const int64_t size = ctx.attributes().get_int("size"), step = ctx.attributes().get_int("step");
  if (size < 1) return error(Code::kInvalidModel, "attribute size is {}, expected 1 or more", size);
  if (step < 1) return error(Code::kInvalidModel, "attribute step is {}, expected 1 or more", step);
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ctx.element(0)), Status();
  TREADLE_ASSIGN(const size_t axis, unfolded_axis(ctx.attributes(), static_cast<int64_t>(x->size())));
  Shape out = *x;
  if (out[axis].is_known() && out[axis].value() < size) {
    return error(Code::kInvalidArgument, "axis {} of input {} is too short, expected at least attribute size, {}", axis,
                 to_string(*x), size);
  }
  out[axis] = floor_div(out[axis] - Dim(size), Dim(step)) + Dim(1);
  out.push_back(Dim(size));
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status prepare_unfold(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  TREADLE_ASSIGN(const size_t axis, unfolded_axis(ctx.attributes(), x.rank()));
  Dims strides = x.strides;
  strides.push_back(strides[axis]);
  strides[axis] *= ctx.attributes().get_int("step");
  return tensor_ops::set_copy_kernel(ctx, ctx.outputs[0].dims, strides, ctx.outputs[0].strides);
}

Status unfolded_axes(AxisContext& c) {
  if (c.in(0) == c.axis(c.rank(0), -1, "dim")) return looks_along("its slices lie across it");
  return c.give(0, c.in(0));
}

}  // namespace

}  // namespace treadle

TREADLE_OP(UnfoldTensor, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .out("output", "T")
      .attr("dim", -1)
      .required("size", ir::AttributeKind::kInt)
      .attr("step", 1)
      .type("T", types::kAllTensorsIr4);
  op.infer(infer_unfold).prepare(prepare_unfold).compute(compute_by_position).moves_elements().axes(unfolded_axes);
}
