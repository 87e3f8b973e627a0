// Regions of a graph: nodes that treadle runs no slower than onnxruntime, with no other nodes in between.
#pragma once

#include <set>
#include <vector>

#include "costs.h"
#include "graph.h"

namespace treadle::provider {

// Sets of nodes, each of which can be a claim. Paths lead from a set to later sets only. No node is included that would
// pass a value other than a tensor across the border of its set.
std::vector<std::set<size_t>> regions_of(const Graph& graph, const Costs& costs);

}  // namespace treadle::provider
