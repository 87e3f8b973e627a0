// Marks nodes from the outputs of the top region back to front, then removes unmarked nodes. Nodes have no effects but
// their outputs, except nodes that check sizes (op/size_check.h), which stay if the region around them does. So a loop
// whose outputs are unused goes as a whole. In a loop that stays, only nodes that check sizes and nodes behind its
// states, its condition and its used scan outputs stay.
#include <algorithm>

#include "op/loop_view.h"
#include "op/size_check.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

class Marker {
 public:
  ValueSet used;

  void use(const ir::Value* v) {
    if (v) used.insert(v);
  }

  // Marks nodes within `region` until nothing changes; the outputs of `region` that matter must be marked already.
  void mark(const ir::Region& region) {
    for (size_t i = region.nodes.size(); i-- > 0;) mark(*region.nodes[i]);
  }

  bool is_live(const ir::Node& node) const {
    const auto is_used = [this](const ir::Value* v) { return v && used.contains(v); };
    return is_size_check(*node.op) || std::any_of(node.outputs.begin(), node.outputs.end(), is_used);
  }

 private:
  void mark(const ir::Node& node) {
    if (!is_live(node)) return;
    for (const ir::Value* v : node.inputs) use(v);
    if (is_loop(node)) {
      mark_outputs(LoopView(node));
    } else if (node.op->control == Control::kIf) {
      mark_outputs(IfView(node));
    } else {
      for (const auto& region : node.regions) {
        for (const ir::Value* v : region->outputs) use(v);
      }
    }
    for (const auto& region : node.regions) mark(*region);
  }

  // An iteration needs the state of the iteration before, even if the final value has no reader.
  void mark_outputs(const LoopView& loop) {
    use(loop.condition_after());
    for (size_t i = 0; i < loop.states(); ++i) use(loop.state(i).after);
    for (size_t i = 0; i < loop.scan_outputs(); ++i) {
      if (used.contains(loop.scan_output(i).whole)) use(loop.scan_output(i).row);
    }
  }

  void mark_outputs(const IfView& choice) {
    for (size_t i = 0; i < choice.results(); ++i) {
      const auto [yes, no, result] = choice.result(i);
      if (!used.contains(result)) continue;
      use(yes);
      use(no);
    }
  }
};

// Sets an unused output of a body to null, in the body and in the node.
void drop_unused_outputs(ir::Region& region, const Marker& marker) {
  ir::for_each_node(region, [&](ir::Node& node) {
    if (is_loop(node)) {
      LoopEditor loop(node);
      for (size_t i = 0; i < loop.scan_outputs(); ++i) {
        if (!marker.used.contains(loop.scan_output(i).whole)) loop.clear_scan_output(i);
      }
    }
    if (node.op->control == Control::kIf) {
      const IfView choice(node);
      for (size_t i = 0; i < choice.results(); ++i) {
        if (!marker.used.contains(choice.result(i).result)) choice.drop_result(i);
      }
    }
    if (node.op->control == Control::kNone) return;
    for (ir::Value*& v : node.outputs) {
      if (v && !marker.used.contains(v)) v = nullptr;
    }
  });
}

}  // namespace

void remove_dead_nodes(ir::Graph& graph, Remarks* remarks) {
  Marker marker;
  for (const ir::Value* v : graph.top().outputs) marker.use(v);
  marker.mark(graph.top());
  erase_nodes(graph.top(), [&](const ir::Region& region, const ir::Node& node) {
    if (marker.is_live(node)) return false;
    if (is_loop(node)) {
      note_of_loop(remarks, Change::kDropped, node, node);
    } else {
      note(remarks, Change::kDropped, region, node);
    }
    return true;
  });
  drop_unused_outputs(graph.top(), marker);
}

}  // namespace treadle::opt
