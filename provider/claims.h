// Which nodes of a graph treadle runs.
#pragma once

#include <functional>
#include <set>
#include <vector>

#include "graph.h"
#include "settings.h"

namespace treadle::provider {

// Nodes that become one node of onnxruntime's.
struct Claim {
  std::set<size_t> nodes;  // of the graph

  std::vector<const Node*> members(const Graph& graph) const;
};

// Values that nodes outside of the claim use, or that the graph gives.
Values outputs_of(const Graph& graph, const Claim& claim);

// Whether treadle would run the node, if it can, whatever surrounds it.
bool is_wanted(const Graph& graph, const Node& node, const Settings& settings, Claiming claiming);

using Accept = std::function<bool(const Claim&)>;  // says whether a claim can be made

// Claims share no node, only tensors cross their borders, and no path leads out of a claim and back into it, not
// through other claims either.
std::vector<Claim> find_claims(const Graph& graph, const Settings& settings, Claiming claiming, const Accept& accept);

}  // namespace treadle::provider
