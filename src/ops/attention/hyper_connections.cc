// HyperConnectionPreMix and HyperConnectionPostMix: mix several streams [..., streams, size] into one, and add a
// branch's output back to all of them. Computed in float. Streams may be packed side by side in one axis; attribute
// num_branches then gives their number.

#include "op/axes.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::attention {

namespace {

using ir::Value;

constexpr ElementType kWide = ElementType::kFloat;

int64_t side_by_side(const ir::Attributes& attributes) {
  return attributes.get_int("num_branches");
}

// The streams as [..., streams, size].
Result<Shape> grouped(const InferContext& ctx, const Shape& x) {
  const int64_t count = side_by_side(ctx.attributes());
  if (count < 0) return error(Code::kInvalidModel, "attribute num_branches is {}, expected 0 or more", count);
  if (x.size() < (count == 0 ? 2u : 1u)) {
    return error(Code::kInvalidArgument, "streams have shape {}, expected [...,streams,size]", to_string(x));
  }
  if (count == 0) return x;
  if (x.back().is_known() && x.back().value() % count != 0) {
    return error(Code::kInvalidArgument, "streams have shape {}, expected rows that divide into {} parts", to_string(x),
                 count);
  }
  Shape result = x;
  result.back() = Dim(count);
  result.push_back(floor_div(x.back(), Dim(count)));
  return result;
}

// The shape of a gate relative to streams [..., streams, size]. It gets further axes until it has as many.
enum class GateForm : uint8_t {
  kStreams /* [..., streams] */,
  kGrouped /* [..., streams, 1 or size] */,
  kFlat /* [..., streams * size] */
};

Result<GateForm> gate_form(const char* name, const Shape& gate, const Shape& streams, bool may_be_flat) {
  const size_t rank = streams.size();
  const Dim &count = streams[rank - 2], &size = streams[rank - 1];
  bool leads = gate.size() == rank || gate.size() + 1 == rank;
  for (size_t i = 0; leads && i + 2 < rank; ++i) leads = !differ(gate[i], streams[i]);
  if (leads && gate.size() == rank && !differ(gate[rank - 2], count) &&
      (gate.back().is_known(1) || !differ(gate.back(), size))) {
    return GateForm::kGrouped;
  }
  if (leads && gate.size() + 1 == rank) {
    if (!differ(gate.back(), count)) return GateForm::kStreams;
    if (may_be_flat && !differ(gate.back(), count * size)) return GateForm::kFlat;
  }
  return error(Code::kInvalidArgument, "{} has shape {}, expected [...,{}], [...,{},1 or {}]{} for streams {}", name,
               to_string(gate), count.to_string(), count.to_string(), size.to_string(),
               may_be_flat ? fmt::format(" or [...,{}]", (count * size).to_string()) : "", to_string(streams));
}

Shape without_streams(const Shape& streams) {
  Shape result(streams.begin(), streams.end() - 2);
  result.push_back(streams.back());
  return result;
}

Status infer_pre_mix(InferContext& ctx) {
  const Shape *x = ctx.shape(0), *gate = ctx.shape(1);
  if (!x) return ctx.set_output(0, ctx.element(0)), Status();
  TREADLE_ASSIGN(const Shape streams, grouped(ctx, *x));
  if (gate) TREADLE_TRY(gate_form("pre_mix", *gate, streams, side_by_side(ctx.attributes()) > 0).status());
  ctx.set_output(0, ctx.element(0), without_streams(streams));
  return {};
}

Status infer_post_mix(InferContext& ctx) {
  const Shape *x = ctx.shape(0), *block = ctx.shape(1), *gate = ctx.shape(2), *mix = ctx.shape(3);
  if (!x) return infer_like_input(ctx);
  TREADLE_ASSIGN(const Shape streams, grouped(ctx, *x));
  if (gate) TREADLE_TRY(gate_form("post_mix", *gate, streams, false).status());
  const auto check = [&](const char* name, const Shape* shape, const Shape& expected) -> Status {
    bool fits = !shape || shape->size() == expected.size();
    for (size_t i = 0; fits && shape && i < expected.size(); ++i) fits = !differ((*shape)[i], expected[i]);
    if (fits) return {};
    return error(Code::kInvalidArgument, "{} has shape {}, expected {}", name, to_string(*shape), to_string(expected));
  };
  TREADLE_TRY(check("block_output", block, without_streams(streams)));
  Shape square = streams;
  square.back() = streams[streams.size() - 2];
  TREADLE_TRY(check("stream_mix", mix, square));
  return infer_like_input(ctx);
}

// ---- Lowering

Value* streams_of(LowerContext& ctx) {
  Value* x = fused::input_as(ctx, 0, kWide);
  const int64_t count = side_by_side(ctx.attributes());
  if (count == 0) return x;
  return ctx.call("Reshape",
                  {x, fused::concat(ctx, {fused::sizes(ctx, ctx.input(0), 0, -1), ctx.constant_int64s({count, -1})})});
}

Result<Value*> gate_of(LowerContext& ctx, size_t i, Value* streams) {
  const Type &x = ctx.type(0), &gate = ctx.type(i);
  if (!x.has_shape || !gate.has_shape) return error(Code::kNotImplemented, "operands of unknown rank");
  Value* wide = fused::input_as(ctx, i, kWide);
  const int64_t count = side_by_side(ctx.attributes());
  const int64_t rank = x.rank() + (count > 0 ? 1 : 0);
  if (gate.rank() == rank) return wide;
  // A flat gate has more elements in its last axis than there are streams.
  Dim all = count > 0 ? Dim(count) : x.shape[x.shape.size() - 2];
  const bool flat = count > 0 && differ(gate.shape.back(), all);
  return flat ? ctx.call("Reshape", {wide, ctx.call("Shape", {streams})}) : fused::unsqueeze(ctx, wide, {-1});
}

Status lower_pre_mix(LowerContext& ctx) {
  Value* streams = streams_of(ctx);
  TREADLE_ASSIGN(Value * gate, gate_of(ctx, 1, streams));
  Value* y = ctx.call("ReduceSum", {ctx.call("Mul", {streams, gate}), ctx.constant_int64s({-2})},
                      {ir::Attribute::of("keepdims", int64_t{0})});
  const float scale = ctx.attributes().get_float("reduction_scale");
  y = ctx.call("Mul", {y, ctx.number(static_cast<double>(scale), kWide)});
  ctx.set_output(0, fused::cast(ctx, y, kWide, ctx.type(0).element));
  return {};
}

Status lower_post_mix(LowerContext& ctx) {
  Value* streams = streams_of(ctx);
  TREADLE_ASSIGN(Value * gate, gate_of(ctx, 2, streams));
  Value* kept = streams;
  if (ctx.has_input(3)) {
    if (!ctx.type(3).has_shape) return error(Code::kNotImplemented, "stream_mix of unknown rank");
    std::vector<int64_t> order;
    for (int64_t i = 0; i < ctx.type(3).rank(); ++i) order.push_back(i);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    Value* mix = ctx.call("Transpose", {fused::input_as(ctx, 3, kWide)}, {ir::Attribute::of("perm", std::move(order))});
    kept = ctx.call("MatMul", {mix, streams});
  }
  Value* injected = ctx.call("Mul", {gate, fused::unsqueeze(ctx, fused::input_as(ctx, 1, kWide), {-2})});
  Value* y = ctx.call("Add", {kept, injected});
  if (side_by_side(ctx.attributes()) > 0) y = ctx.call("Reshape", {y, ctx.call("Shape", {ctx.input(0)})});
  ctx.set_output(0, fused::cast(ctx, y, kWide, ctx.type(0).element));
  return {};
}

// Leading axes, which all operands have, are independent.
Status mixed_axes(AxisContext& c) {
  const int64_t leading = c.rank(0) - (side_by_side(c.attributes()) > 0 ? 1 : 2);
  for (size_t i = 0; i < c.inputs(); ++i) {
    if (c.present(i) && (c.in(i) != c.in(0) || c.in(i) >= leading)) return looks_along("it mixes along it");
  }
  return c.give(0, c.in(0));
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(HyperConnectionPreMix, "com.microsoft") {
  op.since(1)
      .in("streams", "T")
      .in("pre_mix", "M")
      .out("output", "T")
      .attr("num_branches", 0)
      .attr("reduction_scale", 1.0)
      .type("T", types::kFloatsTo32)
      .type("M", types::kFloatsTo32);
  op.infer(attention::infer_pre_mix).lower(attention::lower_pre_mix).axes(attention::mixed_axes);
}

TREADLE_OP(HyperConnectionPostMix, "com.microsoft") {
  op.since(1)
      .in("streams", "T")
      .in("block_output", "T")
      .in("post_mix", "M")
      .in("stream_mix", "M", Arity::kOptional)
      .out("output", "T")
      .attr("num_branches", 0)
      .type("T", types::kFloatsTo32)
      .type("M", types::kFloatsTo32);
  op.infer(attention::infer_post_mix).lower(attention::lower_post_mix).axes(attention::mixed_axes);
}
