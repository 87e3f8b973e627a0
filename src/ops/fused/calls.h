#pragma once
// Helpers for lowerings of fused operators.

#include "op/op_def.h"

namespace treadle::fused {

// Checks that input 0, without padding, has no more rows than input `offsets` has entries for.
inline Status check_tokens(const InferContext& ctx, size_t offsets) {
  const Shape *x = ctx.shape(0), *places = ctx.shape(offsets);
  if (!x || x->empty() || !places) return {};
  const Dim room = element_count(*places);
  if (!room.is_known() || !(*x)[0].is_known() || (*x)[0].value() <= room.value()) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected at most {} tokens, the places of {} {}",
               ctx.node.version->inputs[0].name, to_string(*x), room.value(), ctx.node.version->inputs[offsets].name,
               to_string(*places));
}

inline ir::Value* cast(LowerContext& ctx, ir::Value* v, ElementType from, ElementType to) {
  if (from == to) return v;
  return ctx.call("Cast", {v}, {ir::Attribute::of("to", static_cast<int64_t>(to))});
}

// Indices and lengths are int32 in onnxruntime's operators, and int64 in the standard's.
inline ir::Value* as_int64(LowerContext& ctx, ir::Value* v) {
  return cast(ctx, v, ElementType::kInt32, ElementType::kInt64);
}

// Input i converted to another type.
inline ir::Value* input_as(LowerContext& ctx, size_t i, ElementType to) {
  return cast(ctx, ctx.input(i), ctx.type(i).element, to);
}

inline ir::Value* optional_input(LowerContext& ctx, size_t i) {
  return ctx.has_input(i) ? ctx.input(i) : nullptr;
}

// All attributes of the node, for an operator with the same attributes.
inline std::vector<ir::Attribute> all_attributes(const LowerContext& ctx) {
  const auto all = ctx.attributes().all();
  return {all.begin(), all.end()};
}

// A value of one element as a scalar.
inline ir::Value* as_scalar(LowerContext& ctx, ir::Value* v) {
  return ctx.call("Reshape", {v, ctx.constant_int64s({})});
}

inline ir::Value* concat(LowerContext& ctx, std::initializer_list<ir::Value*> parts, int64_t axis = 0) {
  return ctx.call("Concat", parts, {ir::Attribute::of("axis", axis)});
}

// Sizes [begin, end) of v.
inline ir::Value* sizes(LowerContext& ctx, ir::Value* v, int64_t begin, int64_t end) {
  return ctx.call("Shape", {v}, {ir::Attribute::of("start", begin), ir::Attribute::of("end", end)});
}

inline ir::Value* size_of(LowerContext& ctx, ir::Value* v, int64_t axis) {
  return sizes(ctx, v, axis, axis == -1 ? INT64_MAX : axis + 1);
}

// 0, 1, ..., `count` - 1, where `count` has one element.
inline ir::Value* counted(LowerContext& ctx, ir::Value* count) {
  return ctx.call("Range", {ctx.constant_int64(0), as_scalar(ctx, count), ctx.constant_int64(1)});
}

inline ir::Value* slice(LowerContext& ctx, ir::Value* v, ir::Value* begin, ir::Value* end, int64_t axis) {
  return ctx.call("Slice", {v, begin, end, ctx.constant_int64s({axis})});
}

inline ir::Value* unsqueeze(LowerContext& ctx, ir::Value* v, std::initializer_list<int64_t> axes) {
  return ctx.call("Unsqueeze", {v, ctx.constant_int64s(axes)});
}

}  // namespace treadle::fused
