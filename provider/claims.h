// Decides which nodes of a graph treadle runs.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "graph.h"
#include "settings.h"

namespace treadle::provider {

// Nodes that become one node of onnxruntime.
struct Claim {
  std::set<size_t> nodes;  // of the graph

  std::vector<const Node*> members(const Graph& graph) const;
};

// Values of the claim that other nodes or the graph's outputs use.
Values outputs_of(const Graph& graph, const Claim& claim);

// Whether treadle should run the node, if it can, whatever surrounds it.
bool is_wanted(const Graph& graph, const Node& node, const Settings& settings, Claiming claiming);

using Accept = std::function<bool(const Claim&)>;  // whether a claim can be made

// Claims share no node, and only tensors cross their borders. No path leads out of a claim and back into it, not even
// through other claims.
std::vector<Claim> find_claims(const Graph& graph, const Settings& settings, Claiming claiming, const Accept& accept);

}  // namespace treadle::provider
