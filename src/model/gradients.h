#pragma once
// Gradient names a part of the graph around it: what makes `y` of `xs` and `zs`. Here such a node becomes a Derivative
// with a copy of that part as its body, so that it depends on its inputs alone.

#include "base/status.h"
#include "ir/graph.h"

namespace treadle::model {

// `most_copied`: nodes that all copies together may have.
Status attach_gradients(ir::Graph& graph, size_t most_copied);

}  // namespace treadle::model
