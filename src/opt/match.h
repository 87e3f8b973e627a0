#pragma once
// Helpers that passes use to find nodes.

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/stop.h"
#include "op/op_def.h"

namespace treadle::opt {

inline bool is(const ir::Node& node, std::string_view op, std::string_view domain = "") {
  return node.op->name == op && node.op->domain == domain;
}
// A null node is none of the operators.
inline bool is(const ir::Node* node, std::string_view op) {
  return node && is(*node, op);
}
inline bool is_any(const ir::Node* node, std::initializer_list<std::string_view> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return is(node, op); });
}

// Calls `visit(region, at)` for the node at each position, after the nodes of its bodies. `visit` may insert and remove
// nodes. It returns the position of the last node that need not be visited again. Ends early if it is told to stop.
template <class Visit>
void visit_nodes(ir::Region& region, const Visit& visit) {
  for (size_t at = 0; at < region.nodes.size(); ++at) {
    if (stop_requested()) return;
    for (auto& body : region.nodes[at]->regions) visit_nodes(*body, visit);
    at = visit(region, at);
  }
}

// As visit_nodes, for passes that replace many nodes: the cost of an insertion or removal does not grow with the
// region. While `visit` runs, the nodes behind `at` are not in the region.
template <class Visit>
void rewrite_nodes(ir::Region& region, const Visit& visit) {
  std::vector<std::unique_ptr<ir::Node>> waiting = std::exchange(region.nodes, {});
  region.nodes.reserve(waiting.size());
  for (auto& node : waiting) {
    region.nodes.push_back(std::move(node));
    for (size_t at = region.nodes.size() - 1; at < region.nodes.size() && !stop_requested(); ++at) {
      for (auto& body : region.nodes[at]->regions) rewrite_nodes(*body, visit);
      at = visit(region, at);
    }
  }
}

// As rewrite_nodes; `visit` adds values and their replacements to `replaced`. Each visited node, bodies included,
// already reads the replacements. At the end, the caller replaces the remaining uses (the results of `region`) once.
template <class Visit>
void rewrite_nodes(ir::Region& region, const std::unordered_map<ir::Value*, ir::Value*>& replaced, const Visit& visit) {
  rewrite_nodes(region, [&](ir::Region& around, size_t at) {
    if (!replaced.empty()) ir::replace_uses(*around.nodes[at], replaced);
    return visit(around, at);
  });
}

// Removes the nodes for which `goes(region, node)` is true: first from each region in order, then from the bodies of
// the nodes that stay.
template <class Goes>
void erase_nodes(ir::Region& region, const Goes& goes) {
  std::erase_if(region.nodes, [&](const auto& node) { return goes(region, *node); });
  for (const auto& node : region.nodes) {
    for (const auto& body : node->regions) erase_nodes(*body, goes);
  }
}

}  // namespace treadle::opt
