// Loops from the inside out: what leaves an inner body may leave the outer one as well. Nodes of branches stay where
// they are, for they may not run at all. A node leaves only if nothing can go wrong with it when no trip runs or when
// an earlier node of the first trip fails: it is total, and its sizes are known, so that its inference cannot fail
// either.
#include "base/stop.h"
#include "op/effects.h"
#include "op/op_def.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

bool is_invariant(const ir::Node& node, const ir::Region& body) {
  for (const ir::Value* v : node.inputs) {
    if (v && !v->is_constant() && v->owner == &body) return false;
  }
  return true;
}

// Moves what it can of `body` to position `at` of `region`; returns how many nodes.
size_t hoist(ir::Region& body, ir::Region& region, size_t at, Journal* journal) {
  size_t moved = 0;
  std::vector<std::unique_ptr<ir::Node>> staying;
  for (auto& node : body.nodes) {
    if (!is_total(*node) || !is_invariant(*node, body)) {
      staying.push_back(std::move(node));
      continue;
    }
    note(journal, Change::kHoisted, body, *node);
    node->parent = &region;
    for (ir::Value* v : node->outputs) {
      if (v) v->owner = &region;
    }
    region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(at + moved), std::move(node));
    ++moved;
  }
  body.nodes = std::move(staying);
  return moved;
}

void walk(ir::Region& region, Journal* journal) {
  for (size_t at = 0; at < region.nodes.size(); ++at) {
    if (stop_requested()) return;
    ir::Node& node = *region.nodes[at];
    for (auto& body : node.regions) walk(*body, journal);
    if (node.op->control == Control::kLoop || node.op->control == Control::kScan) {
      at += hoist(*node.regions[0], region, at, journal);
    }
  }
}

}  // namespace

void hoist_invariants(ir::Graph& graph, Journal* journal) {
  walk(graph.top(), journal);
}

}  // namespace treadle::opt
