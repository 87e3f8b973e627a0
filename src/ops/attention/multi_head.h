#pragma once
// What onnxruntime's attentions of as many heads of keys as of queries become: operands as the attention kernel takes
// them, masks as numbers that are added to scores.

#include "ops/fused/calls.h"

namespace treadle::attention {

// A mask of integers as numbers that broadcast to [batch, heads, queries, keys]: 0 where a query attends, the attribute
// mask_filter_value (-10000 where it is left out) elsewhere, in float, since sums with it are rounded. `total`: how
// many keys there are, one element; `length`: how many queries. Shapes:
//   [batch] ends of sequences, [2 * batch] ends and then begins, [3 * batch + 2] ends and what nobody needs here,
//   [batch, keys], [batch, queries, keys], [batch, 1, most, most] of which the last rows and first columns are meant.
struct MaskShape {
  ir::Value* total = nullptr;
  ir::Value* length = nullptr;
  Dim batch;
};
Result<ir::Value*> added_mask(LowerContext& ctx, size_t input, const MaskShape& shape);

// Error unless the mask has one of those shapes.
Status check_mask(const InferContext& ctx, size_t input, const Dim& batch);

// The sum of what is there; null where nothing is.
ir::Value* sum_of(LowerContext& ctx, ir::Value* a, ir::Value* b);

}  // namespace treadle::attention
