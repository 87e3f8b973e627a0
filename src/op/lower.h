#pragma once
// Runs an operator's lowering.

#include <memory>

#include "op/op_def.h"

namespace treadle {

// The graph that replaces `node`. Its inputs are the node's inputs (null if left out), its outputs the node's outputs
// (null if left out or unused). `types` and `values` are parallel to the node's inputs; null: left out, contents
// unknown. Values that the node's bodies capture follow as further inputs of the graph; `captured`, if not null, gets
// these values in order.
Result<std::unique_ptr<ir::Graph>> lower_node(const ir::NodeInfo& node, std::span<const Type* const> types,
                                              std::span<const Tensor* const> values,
                                              std::span<const std::unique_ptr<ir::Region>> bodies = {},
                                              std::vector<ir::Value*>* captured = nullptr);

// Whether the lowering of `node` makes every output that the node names. Errors: kNotImplemented, with the name of the
// first output that is missing.
Status check_outputs_made(const ir::Node& node, const ir::Graph& lowered);
// The error that the node names output `i`, but its lowering does not make it.
Status not_made(const ir::NodeInfo& node, size_t i);

}  // namespace treadle
