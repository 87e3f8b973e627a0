// Regions of a graph: nodes that treadle runs no slower than onnxruntime, with nothing in between that it does.
#pragma once

#include <set>
#include <vector>

#include "costs.h"
#include "graph.h"

namespace treadle::provider {

// Sets of nodes, each of which can be a claim; paths lead from a set to later ones only. No node is in one that would
// take a value other than a tensor from outside of it, or give one to the outside.
std::vector<std::set<size_t>> regions_of(const Graph& graph, const Costs& costs);

}  // namespace treadle::provider
