#include "op/op_def.h"
#include "op/operands.h"
#include "ops/attention/multi_head.h"

namespace treadle::attention {

using namespace fused;  // NOLINT(google-build-using-namespace): helpers of lowerings

namespace {

ir::Value* cut(LowerContext& ctx, ir::Value* v, int64_t begin, int64_t end, int64_t axis = 0) {
  return slice(ctx, v, ctx.constant_int64s({begin}), ctx.constant_int64s({end}), axis);
}

// [batch, 1, 1, keys] from ends of sequences, and from begins if given.
Result<ir::Value*> kept_by_ends(LowerContext& ctx, size_t input, const MaskShape& shape) {
  const Type& mask = ctx.type(input);
  if (!shape.batch.is_known() || !mask.shape[0].is_known()) {
    return error(Code::kNotImplemented, "a mask of one dimension for a batch of unknown size");
  }
  const int64_t batch = shape.batch.value();
  ir::Value *ends = as_int64(ctx, ctx.input(input)), *keys = counted(ctx, shape.total);
  const auto column = [&](ir::Value* v) { return unsqueeze(ctx, v, {1, 2, 3}); };
  ir::Value* kept = ctx.call("Less", {keys, column(cut(ctx, ends, 0, batch))});
  if (mask.shape[0].value() == 2 * batch && batch > 0) {
    kept = ctx.call("And", {kept, ctx.call("GreaterOrEqual", {keys, column(cut(ctx, ends, batch, 2 * batch))})});
  }
  return kept;
}

// The rows of the last queries and the columns of the first keys.
ir::Value* last_rows(LowerContext& ctx, ir::Value* mask, const MaskShape& shape) {
  ir::Value* begin = ctx.call("Sub", {shape.total, shape.length});
  ir::Value* rows = slice(ctx, mask, begin, shape.total, 2);
  return slice(ctx, rows, ctx.constant_int64s({0}), shape.total, 3);
}

}  // namespace

Result<ir::Value*> added_mask(LowerContext& ctx, size_t input, const MaskShape& shape) {
  const Type& mask = ctx.type(input);
  if (!mask.has_shape) return error(Code::kNotImplemented, "a mask of unknown rank");
  ir::Value* kept = nullptr;
  if (mask.rank() == 1) {
    TREADLE_ASSIGN(kept, kept_by_ends(ctx, input, shape));
  } else {
    ir::Value* whole = ctx.input(input);
    if (mask.rank() == 2) whole = unsqueeze(ctx, whole, {1, 2});
    if (mask.rank() == 3) whole = unsqueeze(ctx, whole, {1});
    if (mask.rank() == 4) whole = last_rows(ctx, whole, shape);
    kept = ctx.call("Greater", {whole, ctx.number(0, ElementType::kInt32)});
  }
  const double filtered = static_cast<double>(ctx.attributes().get_float("mask_filter_value", -10000.0f));
  return ctx.call("Where", {kept, ctx.number(0, ElementType::kFloat), ctx.number(filtered, ElementType::kFloat)});
}

Status check_mask(const InferContext& ctx, size_t input, const Dim& batch) {
  const Shape* mask = ctx.shape(input);
  if (!mask) return {};
  bool fits = !mask->empty() && mask->size() <= 4;
  if (fits && mask->size() == 1 && (*mask)[0].is_known() && batch.is_known()) {
    const int64_t n = (*mask)[0].value(), b = batch.value();
    fits = n == b || n == 2 * b || n == 3 * b + 2;
  } else if (fits && mask->size() > 1) {
    fits = !differ((*mask)[0], batch);
  }
  if (fits) return {};
  return error(Code::kInvalidArgument,
               "{} has shape {}, expected [{}], [2 * {}], [3 * {} + 2] or 2 to 4 dimensions for that batch",
               ctx.node.version->inputs[input].name, to_string(*mask), batch.to_string(), batch.to_string(),
               batch.to_string());
}

ir::Value* sum_of(LowerContext& ctx, ir::Value* a, ir::Value* b) {
  return a && b ? ctx.call("Add", {a, b}) : a ? a : b;
}

}  // namespace treadle::attention
