#pragma once
// Inputs of a model that a plan should know by content.

#include <vector>

#include "ir/graph.h"

namespace treadle::session {

// Per graph input: whether it is an integer or bool tensor of rank 0 or 1 from which nodes outside of loops compute the
// condition of an If or a shape input. Trip counts do not count, since a plan's loop runs any number of iterations.
std::vector<bool> deciding_inputs(const ir::Graph& graph);

}  // namespace treadle::session
