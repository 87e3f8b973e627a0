// Marks from the outputs of the top region back to front, then sweeps. Nodes have no effects but their outputs, so a
// loop whose outputs are unused goes as a whole; of a loop that stays, only the nodes behind its states, its condition
// and its used scan outputs are kept.
#include <unordered_set>

#include "op/op_def.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

size_t scan_states(const ir::Node& node) {
  return node.inputs.size() - static_cast<size_t>(node.attributes.get_int("num_scan_inputs"));
}

class Marker {
 public:
  std::unordered_set<const ir::Value*> used;

  void use(const ir::Value* v) {
    if (v) used.insert(v);
  }

  // Marks within `region` until nothing changes; `region`'s outputs that matter are marked already.
  void mark(const ir::Region& region) {
    for (size_t i = region.nodes.size(); i-- > 0;) mark(*region.nodes[i]);
  }

  bool is_live(const ir::Node& node) const {
    for (const ir::Value* v : node.outputs) {
      if (v && used.contains(v)) return true;
    }
    return false;
  }

 private:
  void mark(const ir::Node& node) {
    if (!is_live(node)) return;
    for (const ir::Value* v : node.inputs) use(v);
    for (const auto& region : node.regions) mark_body(node, *region);
  }

  void mark_body(const ir::Node& node, const ir::Region& region) {
    // If: output i of the branch is output i of the node. Loop: a condition, then states and scan outputs. Scan:
    // states, then scan outputs. A state is needed from trip to trip, whether or not its final value is.
    size_t first = 0, states = 0;
    if (node.op->control == Control::kLoop) {
      first = 1;
      states = region.inputs.size() - 2;
      use(region.outputs[0]);
    } else if (node.op->control == Control::kScan) {
      states = scan_states(node);
    } else if (node.op->control == Control::kNone) {
      states = region.outputs.size();
    }
    for (size_t i = first; i < region.outputs.size(); ++i) {
      const size_t out = i - first;
      if (out < states || (out < node.outputs.size() && node.outputs[out] && used.contains(node.outputs[out]))) {
        use(region.outputs[i]);
      }
    }
    mark(region);
  }
};

void sweep(ir::Region& region, const Marker& marker, Journal* journal) {
  std::erase_if(region.nodes, [&](const auto& node) {
    if (marker.is_live(*node)) return false;
    note(journal, Change::kDropped, region, *node);
    return true;
  });
  for (auto& node : region.nodes) {
    for (auto& r : node->regions) sweep(*r, marker, journal);
  }
}

// An output of a body that nobody uses becomes null on both sides.
void drop_unused_outputs(ir::Region& region, const Marker& marker) {
  ir::for_each_node(region, [&](ir::Node& node) {
    if (node.op->control == Control::kNone) return;
    for (auto& body : node.regions) {
      const size_t first = node.op->control == Control::kLoop ? 1 : 0;
      const size_t states = node.op->control == Control::kLoop   ? body->inputs.size() - 2
                            : node.op->control == Control::kScan ? scan_states(node)
                                                                 : 0;
      for (size_t i = first + states; i < body->outputs.size(); ++i) {
        const size_t out = i - first;
        ir::Value* outer = out < node.outputs.size() ? node.outputs[out] : nullptr;
        if (outer && marker.used.contains(outer)) continue;
        body->outputs[i] = nullptr;
      }
    }
    for (ir::Value*& v : node.outputs) {
      if (v && !marker.used.contains(v)) v = nullptr;
    }
  });
}

}  // namespace

void remove_dead_nodes(ir::Graph& graph, Journal* journal) {
  Marker marker;
  for (const ir::Value* v : graph.top().outputs) marker.use(v);
  marker.mark(graph.top());
  sweep(graph.top(), marker, journal);
  drop_unused_outputs(graph.top(), marker);
}

}  // namespace treadle::opt
