#pragma once
// A Gradient names a part of the graph around it: the nodes that compute `y` from `xs` and `zs`. This turns the node
// into a Derivative with a copy of that part as its body, so that it depends on its inputs alone.

#include "base/status.h"
#include "ir/graph.h"

namespace treadle::model {

// `most_copied`: limit of the nodes in all copies together.
Status attach_gradients(ir::Graph& graph, size_t most_copied);

}  // namespace treadle::model
