// Hoists from inner loops to outer ones, because a node that leaves an inner body may leave the outer one as well.
// Nodes of branches stay, because they may not run at all. A node leaves only if it cannot fail when no iteration runs,
// or when an earlier node of the first iteration fails: it is total, and its sizes are known, so that its inference
// cannot fail either.
#include "op/effects.h"
#include "op/loop_view.h"
#include "opt/builder.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

bool is_invariant(const ir::Node& node, const ir::Region& body) {
  for (const ir::Value* v : node.inputs) {
    if (v && !v->is_constant() && v->owner == &body) return false;
  }
  return true;
}

// Moves the invariant nodes of `body` to position `at` of `region`; returns their number.
size_t hoist(ir::Graph& graph, ir::Region& body, ir::Region& region, size_t at, Remarks* remarks) {
  Builder before(graph, region, at);
  std::vector<std::unique_ptr<ir::Node>> staying;
  for (auto& node : body.nodes) {
    if (!is_total(*node) || !is_invariant(*node, body)) {
      staying.push_back(std::move(node));
      continue;
    }
    note(remarks, Change::kHoisted, body, *node);
    before.adopt(std::move(node));
  }
  body.nodes = std::move(staying);
  return before.added();
}

}  // namespace

void hoist_invariants(ir::Graph& graph, Remarks* remarks) {
  rewrite_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    ir::Node& node = *region.nodes[at];
    return is_loop(node) ? at + hoist(graph, *node.regions[0], region, at, remarks) : at;
  });
}

}  // namespace treadle::opt
