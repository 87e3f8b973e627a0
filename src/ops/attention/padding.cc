// RemovePadding and RestorePadding convert between [batch, length, size], with sequences padded at the end, and
// [tokens, size]. RelativePositionBias looks up T5's table by logarithmic distances.

#include <array>
#include <cmath>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "ops/fused/calls.h"

namespace treadle::attention {

namespace {

using namespace fused;  // NOLINT(google-build-using-namespace): helpers of lowerings

ir::Value* as_int32(LowerContext& ctx, ir::Value* v) {
  return cast(ctx, v, ElementType::kInt64, ElementType::kInt32);
}

Status infer_remove(InferContext& ctx) {
  const Shape *x = ctx.shape(0), *counts = ctx.shape(1);
  if (x && x->size() != 3) {
    return error(Code::kInvalidArgument, "input has shape {}, expected [batch,length,size]", to_string(*x));
  }
  if (counts && (counts->size() != 1 || (x && differ((*counts)[0], (*x)[0])))) {
    return error(Code::kInvalidArgument, "sequence_token_count has shape {}, expected [{}]", to_string(*counts),
                 x ? (*x)[0].to_string() : "batch");
  }
  const Shape sizes = x ? *x : unknown_shape(3);
  const auto set = [&](size_t i, ElementType type, Shape shape) {
    if (i < ctx.outputs.size()) ctx.set_output(i, type, std::move(shape));
  };
  set(0, ctx.element(0), {Dim::unknown(), sizes[2]});
  set(1, ElementType::kInt32, {sizes[0], sizes[1]});
  set(2, ElementType::kInt32, {sizes[0] + Dim(1)});
  set(3, ElementType::kInt32, {int64_t{1}});
  return {};
}

Status lower_remove(LowerContext& ctx) {
  ir::Value *length = size_of(ctx, ctx.input(0), 1), *minus_one = ctx.constant_int64s({-1});
  ir::Value* counts = as_int64(ctx, ctx.input(1));
  ir::Value* kept = ctx.call("Less", {unsqueeze(ctx, counted(ctx, length), {0}), unsqueeze(ctx, counts, {1})});
  kept = ctx.call("Reshape", {kept, minus_one});
  const auto places = [&](ir::Value* flags) { return ctx.call("Reshape", {ctx.call("NonZero", {flags}), minus_one}); };
  ir::Value* tokens = places(kept);
  ir::Value* rows = ctx.call("Reshape", {ctx.input(0), concat(ctx, {minus_one, size_of(ctx, ctx.input(0), 2)})});
  ctx.set_output(0, ctx.call("Gather", {rows, tokens}));
  ir::Value* offsets = concat(ctx, {tokens, places(ctx.call("Not", {kept}))});
  ctx.set_output(1, as_int32(ctx, ctx.call("Reshape", {offsets, sizes(ctx, ctx.input(0), 0, 2)})));
  ir::Value* ends = ctx.call("CumSum", {counts, ctx.constant_int64(0)});
  ctx.set_output(2, as_int32(ctx, concat(ctx, {ctx.constant_int64s({0}), ends})));
  ctx.set_output(3, as_int32(ctx, ctx.call("ReduceMax", {counts, ctx.constant_int64s({0})})));
  return {};
}

Status infer_restore(InferContext& ctx) {
  const Shape *x = ctx.shape(0), *offsets = ctx.shape(1);
  if (x && x->size() != 2) {
    return error(Code::kInvalidArgument, "input has shape {}, expected [tokens,size]", to_string(*x));
  }
  if (offsets && offsets->size() != 2) {
    return error(Code::kInvalidArgument, "token_offset has shape {}, expected [batch,length]", to_string(*offsets));
  }
  TREADLE_TRY(check_tokens(ctx, 1));
  const Shape places = offsets ? *offsets : unknown_shape(2);
  ctx.set_output(0, ctx.element(0), {places[0], places[1], x ? (*x)[1] : Dim::unknown()});
  return {};
}

Status lower_restore(LowerContext& ctx) {
  ir::Value *size = size_of(ctx, ctx.input(0), 1), *shape = ctx.call("Shape", {ctx.input(1)});
  ir::Value* places = ctx.call("Reshape", {as_int64(ctx, ctx.input(1)), ctx.constant_int64s({-1, 1})});
  places = slice(ctx, places, ctx.constant_int64s({0}), size_of(ctx, ctx.input(0), 0), 0);
  ir::Value* rows = ctx.call("ReduceProd", {shape, ctx.constant_int64s({0})});
  ir::Value* zeros = ctx.call("Expand", {ctx.number(0, ctx.type(0).element), concat(ctx, {rows, size})});
  zeros = ctx.call("ScatterND", {zeros, places, ctx.input(0)});
  ctx.set_output(0, ctx.call("Reshape", {zeros, concat(ctx, {shape, size})}));
  return {};
}

// ---- RelativePositionBias

Status infer_relative(InferContext& ctx) {
  const Shape* table = ctx.shape(0);
  if (table && table->size() != 2) {
    return error(Code::kInvalidArgument, "bias_table has shape {}, expected [buckets,heads]", to_string(*table));
  }
  if (ctx.attributes().get_int("max_distance") < 1) {
    return error(Code::kInvalidModel, "attribute max_distance is {}, expected at least 1",
                 ctx.attributes().get_int("max_distance"));
  }
  const auto length = [&](size_t i) {
    const auto value = ctx.dims_value(i);
    return value && value->size() == 1 ? (*value)[0] : Dim::unknown();
  };
  ctx.set_output(0, ctx.element(0), {int64_t{1}, table ? (*table)[1] : Dim::unknown(), length(1), length(2)});
  return {};
}

// The first half of the buckets holds a distance each. The rest share distances by their logarithm, up to max_distance.
// If attention is bidirectional, half of all buckets is for later keys.
Status lower_relative(LowerContext& ctx) {
  const bool both = ctx.attributes().get_int("is_bidirectional") != 0;
  const Type& table = ctx.type(0);
  if (!table.has_shape || !table.shape[0].is_known()) return error(Code::kNotImplemented, "buckets of unknown number");
  const int64_t buckets = table.shape[0].value() / (both ? 2 : 1), exact = buckets / 2;
  const auto one = [&](size_t i) { return ctx.call("Reshape", {ctx.input(i), ctx.constant_int64s({1})}); };
  ir::Value* keys = unsqueeze(ctx, counted(ctx, one(2)), {0});
  ir::Value* distance = ctx.call("Sub", {unsqueeze(ctx, counted(ctx, one(1)), {1}), keys});  // query - key
  ir::Value* zero = ctx.constant_int64(0);
  ir::Value* first = nullptr;  // bucket
  if (both) {
    first = ctx.call("Where", {ctx.call("Less", {distance, zero}), ctx.constant_int64(buckets), zero});
    distance = ctx.call("Abs", {distance});
  } else {
    distance = ctx.call("Max", {distance, zero});
  }
  const auto number = [&](double value) { return ctx.number(value, ElementType::kFloat); };
  const double most =
      std::log(static_cast<double>(ctx.attributes().get_int("max_distance")) / static_cast<double>(exact));
  ir::Value* share =
      cast(ctx, ctx.call("Max", {distance, ctx.constant_int64(1)}), ElementType::kInt64, ElementType::kFloat);
  share = ctx.call("Log", {ctx.call("Div", {share, number(static_cast<double>(exact))})});
  share = ctx.call("Mul", {ctx.call("Div", {share, number(most)}), number(static_cast<double>(buckets - exact))});
  share = ctx.call("Add", {cast(ctx, share, ElementType::kFloat, ElementType::kInt64), ctx.constant_int64(exact)});
  share = ctx.call("Min", {share, ctx.constant_int64(buckets - 1)});
  ir::Value* bucket = ctx.call("Where", {ctx.call("Less", {distance, ctx.constant_int64(exact)}), distance, share});
  if (first) bucket = ctx.call("Add", {bucket, first});
  ir::Value* bias = ctx.call("Gather", {ctx.call("Transpose", {ctx.input(0)}), bucket}, {ir::Attribute::of("axis", 1)});
  ctx.set_output(0, unsqueeze(ctx, bias, {0}));
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(RemovePadding, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .in("sequence_token_count", "M")
      .out("output", "T")
      .out("token_offset", "M")
      .out("cumulated_seq_len", "M")
      .out("max_seq_len", "M")
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("M", types::kInt32s);
  op.infer(attention::infer_remove)
      .lower(attention::lower_remove)
      .can_fail()
      .no_axes("its tokens are those of all sequences");
}

TREADLE_OP(RestorePadding, "com.microsoft") {
  op.since(1)
      .in("input", "T")
      .in("token_offset", "M")
      .out("output", "T")
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("M", types::kInt32s);
  op.infer(attention::infer_restore)
      .lower(attention::lower_restore)
      .can_fail()
      .no_axes("its tokens are those of all sequences");
}

TREADLE_OP(RelativePositionBias, "com.microsoft") {
  op.since(1)
      .in("bias_table", "T")
      .in("query_length", "U")
      .in("key_length", "U")
      .out("output", "T")
      .attr("is_bidirectional", 0)
      .required("max_distance", ir::AttributeKind::kInt)
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("U", types::kInt64s);
  op.infer(attention::infer_relative)
      .lower(attention::lower_relative)
      .shape_inputs({1, 2})
      .can_fail()
      .no_axes("its sizes are numbers that it is given");
}
