#pragma once
// Which inputs of a model a plan should know the contents of.

#include <vector>

#include "ir/graph.h"

namespace treadle::session {

// Per graph input: an integer or bool tensor of rank 0 or 1 from which the condition of an If or the contents of a
// shape input are computed, by nodes outside of loops. Trip counts do not count: a loop runs any number of trips.
std::vector<bool> deciding_inputs(const ir::Graph& graph);

}  // namespace treadle::session
