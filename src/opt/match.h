#pragma once
// How rewrites find their nodes.

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/stop.h"
#include "op/op_def.h"

namespace treadle::opt {

inline bool is(const ir::Node& node, std::string_view op, std::string_view domain = "") {
  return node.op->name == op && node.op->domain == domain;
}
// Null is nothing.
inline bool is(const ir::Node* node, std::string_view op) {
  return node && is(*node, op);
}
inline bool is_any(const ir::Node* node, std::initializer_list<std::string_view> ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return is(node, op); });
}

// Calls `visit(region, at)` for the node at each position, behind those of its bodies. It may put nodes in and take
// them out, and returns the position of the last one that need not be visited again. Ends early if it is told to stop.
template <class Visit>
void visit_nodes(ir::Region& region, const Visit& visit) {
  for (size_t at = 0; at < region.nodes.size(); ++at) {
    if (stop_requested()) return;
    for (auto& body : region.nodes[at]->regions) visit_nodes(*body, visit);
    at = visit(region, at);
  }
}

// Takes out the nodes of which `goes(region, node)` says so, in the order of each region, then those of the bodies of
// what stays.
template <class Goes>
void erase_nodes(ir::Region& region, const Goes& goes) {
  std::erase_if(region.nodes, [&](const auto& node) { return goes(region, *node); });
  for (const auto& node : region.nodes) {
    for (const auto& body : node->regions) erase_nodes(*body, goes);
  }
}

}  // namespace treadle::opt
