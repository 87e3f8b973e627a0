#pragma once
// Inputs that a caller gives no value for, though the model does not declare them as optional. onnxruntime runs such a
// model as far as nothing needs the values, and OptionalHasElement tells the model that they are absent.

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace treadle::session {

// A copy of `graph` without the inputs that `absent` (parallel to the graph's inputs) marks. Where an operator's input
// may be left out, an absent value is left out. A node that needs an absent value becomes a Trap, which names the input
// when a run reaches the node.
std::unique_ptr<ir::Graph> without_inputs(const ir::Graph& graph, const std::vector<bool>& absent);

}  // namespace treadle::session
