// Operators of com.microsoft that operators of ai.onnx have replaced: Trilu, Range, Pad, Unique, ExpandDims, GatherND,
// GridSample. Each is lowered to its successor. And SampleOp, which returns its input.

#include <cmath>

#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/registry.h"
#include "ops/fused/calls.h"

namespace treadle::early {

namespace {

using ir::Attribute;
using ir::Value;

// Inference of the operator of that name in ai.onnx, which has the node's inputs and attributes.
template <OpText kName>
Status infer_successor(InferContext& ctx) {
  return require_op(kName.text).infer(ctx);
}

template <OpText kName>
Status successor_axes(AxisContext& c) {
  return require_op(kName.text).axes(c);
}

// ---- Trilu

Status lower_trilu(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("Trilu", {ctx.input(0), fused::optional_input(ctx, 1)}, fused::all_attributes(ctx)));
  return {};
}

// ---- Range: bounds may be vectors of one element, and the step may be missing.

Status infer_range(InferContext& ctx) {
  if (ctx.has_input(2)) return require_op("Range").infer(ctx);
  for (size_t i = 0; i < 2; ++i) {
    const Dim count = length_of(ctx, i);
    if (!differ(count, Dim(1))) continue;
    return error(Code::kInvalidArgument, "{} has {} elements, expected 1", i == 0 ? "start" : "limit", count.value());
  }
  const Tensor *start = ctx.value(0), *limit = ctx.value(1);
  Dim count;
  if (start && limit) {
    const double span = std::ceil(limit->double_at(0) - start->double_at(0));
    if (span < 4.6e18) count = Dim(span > 0 ? static_cast<int64_t>(span) : 0);
  }
  ctx.set_output(0, ctx.element(0), {std::move(count)});
  return {};
}

Status lower_range(LowerContext& ctx) {
  const auto bound = [&](size_t i) { return fused::as_scalar(ctx, ctx.input(i)); };
  Value* step = ctx.has_input(2) ? bound(2) : ctx.number(1, ctx.type(0).element);
  ctx.set_output(0, ctx.call("Range", {bound(0), bound(1), step}));
  return {};
}

// ---- Pad: the pads may be a matrix of one row.

Status check_pads(const Shape& pads, const Shape* data) {
  const bool row = pads.size() == 1 || (pads.size() == 2 && !differ(pads[0], Dim(1)));
  const bool fits = row && (!data || !differ(pads.back(), Dim(2 * static_cast<int64_t>(data->size()))));
  if (fits) return {};
  return error(Code::kInvalidArgument, "pads have shape {}, expected two for each axis of data {}", to_string(pads),
               data ? to_string(*data) : "?");
}

Status infer_pad(InferContext& ctx) {
  const std::string_view mode = ctx.attributes().get_string("mode");
  if (mode != "constant" && mode != "reflect" && mode != "edge") {
    return error(Code::kInvalidModel, "attribute mode is '{}', expected 'constant', 'reflect' or 'edge'", mode);
  }
  const Shape *data = ctx.shape(0), *pads = ctx.shape(1);
  if (pads) TREADLE_TRY(check_pads(*pads, data));
  if (!data) return ctx.set_output(0, ctx.element(0)), Status();
  const Tensor* known = ctx.value(1);
  Shape out = known ? *data : unknown_shape(data->size());
  for (size_t i = 0; known && i < out.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    out[i] = out[i] + Dim(known->int64_at(at)) + Dim(known->int64_at(at + static_cast<int64_t>(out.size())));
    if (out[i].is_known() && out[i].value() < 0) {
      return error(Code::kInvalidArgument, "axis {} of data {} would have size {}, expected at least 0", i,
                   to_string(*data), out[i].value());
    }
  }
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status lower_pad(LowerContext& ctx) {
  Value* pads = ctx.call("Reshape", {ctx.input(1), ctx.constant_int64s({-1})});
  Value* value = ctx.has_input(2) ? fused::as_scalar(ctx, ctx.input(2)) : nullptr;
  ctx.set_output(0, ctx.call("Pad", {ctx.input(0), pads, value}, fused::all_attributes(ctx)));
  return {};
}

// ---- Unique: distinct elements in order of their first occurrence.

Status infer_unique(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (x && x->size() != 1) {
    return error(Code::kInvalidArgument, "x has shape {}, expected one dimension", to_string(*x));
  }
  const Dim count = Dim::unknown();
  ctx.set_output(0, ctx.element(0), {count});
  ctx.set_output(1, ElementType::kInt64, {x ? (*x)[0] : Dim()});
  ctx.set_output(2, ElementType::kInt64, {count});
  return {};
}

Status lower_unique(LowerContext& ctx) {
  Value* const inputs[] = {ctx.input(0)};
  const ir::Node* found = ctx.node("Unique", inputs, 4, {Attribute::of("sorted", int64_t{0})});
  for (const size_t i : {0, 1, 2}) ctx.set_output(i, found->outputs[i == 0 ? 0 : i + 1]);
  return {};
}

// ---- ExpandDims

Status infer_expand_dims(InferContext& ctx) {
  const Dim count = length_of(ctx, 1);
  if (differ(count, Dim(1))) {
    return error(Code::kInvalidArgument, "axis has {} elements, expected 1", count.value());
  }
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ctx.element(0)), Status();
  const auto rank = static_cast<int64_t>(x->size());
  const Tensor* axis = ctx.value(1);
  if (!axis) return ctx.set_output(0, ctx.element(0), unknown_shape(x->size() + 1)), Status();
  const int64_t at = axis->int64_at(0);
  if (at < -rank - 1 || at > rank) {
    return error(Code::kInvalidArgument, "axis is {}, expected {} to {} for X {}", at, -rank - 1, rank, to_string(*x));
  }
  Shape out = *x;
  out.insert(static_cast<size_t>(at < 0 ? at + rank + 1 : at), Dim(1));
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

Status lower_expand_dims(LowerContext& ctx) {
  Value* axis = ctx.call("Reshape", {fused::as_int64(ctx, ctx.input(1)), ctx.constant_int64s({1})});
  ctx.set_output(0, ctx.call("Unsqueeze", {ctx.input(0), axis}));
  return {};
}

// ---- GatherND

Status lower_gather_nd(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("GatherND", {ctx.input(0), fused::input_as(ctx, 1, ElementType::kInt64)}));
  return {};
}

// ---- GridSample

Status infer_grid_sample(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (x && x->size() != 4) return error(Code::kInvalidArgument, "X has shape {}, expected [N,C,H,W]", to_string(*x));
  return require_op("GridSample").infer(ctx);
}

Status lower_grid_sample(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("GridSample", {ctx.input(0), ctx.input(1)}, fused::all_attributes(ctx)));
  return {};
}

// ---- SampleOp

Status lower_sample(LowerContext& ctx) {
  ctx.set_output(0, ctx.call("Identity", {ctx.input(0)}));
  return {};
}

}  // namespace

}  // namespace treadle::early

TREADLE_OP(Trilu, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("k", "tensor(int64)", Arity::kOptional)
      .out("Y", "T")
      .attr("upper", 1)
      .type("T", types::kFillableIr4);
  op.infer(early::infer_successor<"Trilu">)
      .lower(early::lower_trilu)
      .axes(early::successor_axes<"Trilu">, axes::unchanged);
}

TREADLE_OP(Range, "com.microsoft") {
  op.since(1)
      .in("start", "T")
      .in("limit", "T")
      .in("delta", "T", Arity::kOptional)
      .out("Y", "T")
      .type("T", types::kMlNumbers | tensors(ElementType::kInt16));
  op.infer(early::infer_range).lower(early::lower_range).can_fail().no_axes("its bounds are data");
}

TREADLE_OP(Pad, "com.microsoft") {
  op.since(1)
      .in("data", "T")
      .in("pads", "tensor(int64)")
      .in("value", "T", Arity::kOptional)
      .out("output", "T")
      .attr("mode", "constant")
      .type("T", types::kFloats);
  op.infer(early::infer_pad).lower(early::lower_pad).can_fail().axes(early::successor_axes<"Pad">);
}

TREADLE_OP(Unique, "com.microsoft") {
  op.since(1)
      .in("x", "T")
      .out("y", "T")
      .out("idx", "tensor(int64)")
      .out("counts", "tensor(int64)")
      .type("T", types::kAllTensors);
  op.infer(early::infer_unique).lower(early::lower_unique).no_axes("what it finds depends on all positions");
}

TREADLE_OP(ExpandDims, "com.microsoft") {
  op.since(1).in("X", "T").in("axis", "tensor(int32)").out("Y", "T").type("T", types::kAllTensors);
  op.infer(early::infer_expand_dims).lower(early::lower_expand_dims).can_fail().axes(axes::reshaped);
}

TREADLE_OP(GatherND, "com.microsoft") {
  op.since(1)
      .in("data", "T")
      .in("indices", "Tind")
      .out("output", "T")
      .type("T", types::kAllTensors)
      .type("Tind", types::kIndices);
  op.infer(early::infer_successor<"GatherND">)
      .lower(early::lower_gather_nd)
      .can_fail()
      .axes(early::successor_axes<"GatherND">);
}

TREADLE_OP(GridSample, "com.microsoft") {
  op.since(1)
      .in("X", "T1")
      .in("Grid", "T1")
      .out("Y", "T2")
      .attr("align_corners", 0)
      .attr("mode", "bilinear")
      .attr("padding_mode", "zeros")
      .type("T1", types::kAllTensors)
      .type("T2", types::kFloats);
  op.infer(early::infer_grid_sample)
      .lower(early::lower_grid_sample)
      .can_fail()
      .axes(early::successor_axes<"GridSample">);
}

TREADLE_OP(SampleOp, "com.microsoft") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kNumeric32);
  op.infer(infer_like_input).lower(early::lower_sample).axes(axes::element_by_element, axes::unchanged);
}
