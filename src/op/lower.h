#pragma once
// Runs an operator's lowering.

#include <memory>

#include "op/op_def.h"

namespace treadle {

// The graph that `node` stands for: its inputs are the node's inputs (null where one is left out), its outputs the
// node's outputs (null where left out or unused). `types` and `values` are parallel to the node's inputs; null: left
// out, contents not known. What the node's bodies capture follows as further inputs of the graph; `captured`, if given,
// gets these values in order.
Result<std::unique_ptr<ir::Graph>> lower_node(const ir::NodeInfo& node, std::span<const Type* const> types,
                                              std::span<const Tensor* const> values,
                                              std::span<const std::unique_ptr<ir::Region>> bodies = {},
                                              std::vector<ir::Value*>* captured = nullptr);

// Whether the lowering of `node` makes every output that the node names. Errors: kNotImplemented, which names the first
// output that is not made.
Status check_outputs_made(const ir::Node& node, const ir::Graph& lowered);
// The error for output `i`, which the node names and nothing makes.
Status not_made(const ir::NodeInfo& node, size_t i);

}  // namespace treadle
