#include "growth.h"

#include <algorithm>

#include "types.h"

namespace treadle::provider {

Growth::Growth(const Graph& graph, const std::vector<Claim>& claims)
    : graph_(graph), claims_(claims), before_(graph.nodes.size()), behind_(graph.nodes.size()) {
  for (const auto& [value, users] : graph.consumers) {
    const auto producer = graph.producers.find(value);
    if (producer == graph.producers.end()) continue;
    for (const size_t user : users) {
      before_[user].insert(producer->second);
      behind_[producer->second].insert(user);
    }
  }
}

std::optional<Claim> Growth::from(const std::set<size_t>& seeds) {
  nodes_.clear();
  for (const size_t seed : seeds) {
    if (!add(seed)) return {};
  }
  for (size_t before = 0; before != nodes_.size();) {
    before = nodes_.size();
    const std::set<size_t> now = nodes_;
    for (const size_t node : now) {
      const Node& member = graph_.nodes[node];
      if (!close_inputs(member) || !close_outputs(member) || !close_fixed(member)) return {};
    }
    if (!close_paths()) return {};
  }
  return Claim{nodes_};
}

bool Growth::add(size_t node) {
  if (is_taken(graph_.nodes[node].handle)) return false;
  nodes_.insert(node);
  if (const std::set<size_t>* claim = claim_of(node)) nodes_.insert(claim->begin(), claim->end());
  return true;
}

bool Growth::close_inputs(const Node& node) {
  for (const Values* used : {&node.inputs, &node.captured}) {
    for (const OrtValueInfo* value : *used) {
      if (!value || can_cross(type_of(value)) || is_constant(value)) continue;
      const auto producer = graph_.producers.find(name_of(value));
      if (producer == graph_.producers.end() || !add(producer->second)) return false;
    }
  }
  return true;
}

bool Growth::close_outputs(const Node& node) {
  for (const OrtValueInfo* value : node.outputs) {
    if (!value || can_cross(type_of(value))) continue;
    const std::string name = name_of(value);
    if (graph_.outputs.contains(name)) return false;
    const auto users = graph_.consumers.find(name);
    if (users == graph_.consumers.end()) continue;
    for (const size_t user : users->second) {
      if (!add(user)) return false;
    }
  }
  return true;
}

// Takes nodes whose results are the same in every run and serve the claim alone: treadle computes and packs them once.
bool Growth::close_fixed(const Node& node) {
  for (const Values* used : {&node.inputs, &node.captured}) {
    for (const OrtValueInfo* value : *used) {
      const auto producer = graph_.producers.find(name_of(value));
      if (producer == graph_.producers.end() || !graph_.fixed.contains(producer->second)) continue;
      if (serves_claim(producer->second) && !add(producer->second)) return false;
    }
  }
  return true;
}

bool Growth::serves_claim(size_t node) const {
  const Values& values = graph_.nodes[node].outputs;
  return !is_taken(graph_.nodes[node].handle) && std::ranges::all_of(values, [&](const OrtValueInfo* value) {
    const std::string name = name_of(value);
    const auto users = graph_.consumers.find(name);
    if (graph_.outputs.contains(name)) return false;
    return users == graph_.consumers.end() ||
           std::ranges::all_of(users->second, [&](size_t user) { return nodes_.contains(user); });
  });
}

// Takes the nodes on paths from the claim back to the claim.
bool Growth::close_paths() {
  const std::set<size_t> later = reachable(behind_);
  for (const size_t node : reachable(before_)) {
    if (later.contains(node) && !add(node)) return false;
  }
  return true;
}

// Nodes reachable from the claim, without its own. A path that reaches a node of another claim reaches all of that
// claim.
std::set<size_t> Growth::reachable(const Neighbours& neighbours) const {
  std::set<size_t> found;
  std::vector<size_t> waiting(nodes_.begin(), nodes_.end());
  const auto visit = [&](size_t node) {
    if (!nodes_.contains(node) && found.insert(node).second) waiting.push_back(node);
  };
  while (!waiting.empty()) {
    const size_t node = waiting.back();
    waiting.pop_back();
    for (const size_t next : neighbours[node]) {
      visit(next);
      if (const std::set<size_t>* claim = claim_of(next)) {
        for (const size_t other : *claim) visit(other);
      }
    }
  }
  return found;
}

const std::set<size_t>* Growth::claim_of(size_t node) const {
  for (const Claim& claim : claims_) {
    if (claim.nodes.contains(node)) return &claim.nodes;
  }
  return nullptr;
}

}  // namespace treadle::provider
