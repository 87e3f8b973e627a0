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

// A Loop, a Scan, or an If with one of them in a branch.
bool runs_loop(const Node& node);
// Whether treadle has a reason to run a node of a graph, or some node of it.
bool is_seed(const Graph& graph, const Node& node, const Settings& settings);
bool has_seeds(const Graph& graph, const Settings& settings);

// `accept` says whether a claim can be made. Claims share no node, only tensors cross their borders, and no path leads
// out of a claim and back into it, not through other claims either.
std::vector<Claim> find_claims(const Graph& graph, const Settings& settings,
                               const std::function<bool(const Claim&)>& accept);

}  // namespace treadle::provider
