// A state that every iteration passes on unchanged has its initial value in all of them. The body reads the initial
// value instead. So weights that pass through a loop are constants for later passes, and limits of iterations are known
// outside of the loop.
#include <unordered_map>

#include "op/loop_view.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

bool same_type(const ir::Value& a, const ir::Value& b) {
  return a.type.is_concrete() && b.type.is_concrete() && a.type.element == b.type.element &&
         same(a.type.shape, b.type.shape);
}

// A loop that does nothing but iterate stays, because the limits of its run apply to it.
bool makes_something(const LoopView& loop) {
  for (size_t i = 0; i < loop.states(); ++i) {
    if (!loop.is_kept(i)) return true;
  }
  return loop.scan_outputs() > 0;
}

void drop_kept(ir::Node& node, std::unordered_map<ir::Value*, ir::Value*>& replaced, Remarks* remarks) {
  LoopEditor loop(node);
  if (!makes_something(loop)) return;
  for (size_t i = loop.states(); i-- > 0;) {
    const auto [initial, before, after, final] = loop.state(i);
    if (!loop.is_kept(i) || !initial || !before || !same_type(*initial, *before)) continue;
    if (remarks) remarks->add({Change::kElided, std::string(node.name), std::string(before->name), "state"});
    replaced[before] = initial;
    if (final) replaced[final] = initial;
    loop.remove_state(i);
  }
}

}  // namespace

void drop_kept_states(ir::Graph& graph, Remarks* remarks) {
  std::unordered_map<ir::Value*, ir::Value*> replaced;
  rewrite_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    if (is_loop(*region.nodes[at])) drop_kept(*region.nodes[at], replaced, remarks);
    return at;
  });
  ir::replace_uses(graph, replaced);
}

}  // namespace treadle::opt
