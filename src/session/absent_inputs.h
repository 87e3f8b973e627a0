#pragma once
// Inputs without a value from the caller that the model does not declare as optional. onnxruntime runs such a model up
// to the first node that needs a missing value, and OptionalHasElement tells the model that a value is missing.

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace treadle::session {

// A copy of `graph` without the inputs that `absent` (parallel to the graph's inputs) marks. An optional input of a
// node is left out if its value is absent. A node that requires an absent value becomes a Trap, which raises an error
// with the name of the input when a run reaches it.
std::unique_ptr<ir::Graph> without_inputs(const ir::Graph& graph, const std::vector<bool>& absent);

}  // namespace treadle::session
