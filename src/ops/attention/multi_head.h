#pragma once
// Lowering of onnxruntime's attention operators with as many heads of keys as of queries: operands in the form of
// Attention, and masks as numbers that are added to scores.

#include "ops/fused/calls.h"

namespace treadle::attention {

// An integer mask as float numbers that broadcast to [batch, heads, queries, keys]: 0 where a query attends, elsewhere
// the attribute mask_filter_value (default -10000). They are float because sums with them are rounded. `total`: the
// number of keys, one element; `length`: the number of queries. Shapes of the mask:
//   [batch] ends of sequences, [2 * batch] ends and then begins, [3 * batch + 2] ends and unused numbers,
//   [batch, keys], [batch, queries, keys], [batch, 1, most, most] with its last rows and first columns used.
struct MaskShape {
  ir::Value* total = nullptr;
  ir::Value* length = nullptr;
  Dim batch;
};
Result<ir::Value*> added_mask(LowerContext& ctx, size_t input, const MaskShape& shape);

// Errors: the mask has none of these shapes.
Status check_mask(const InferContext& ctx, size_t input, const Dim& batch);

// The sum of the values that are not null; null if both are.
ir::Value* sum_of(LowerContext& ctx, ir::Value* a, ir::Value* b);

}  // namespace treadle::attention
