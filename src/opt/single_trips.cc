// A stream that is pushed step by step runs its loops once. What could fail stays a loop: its errors name the trip.
#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/stop.h"
#include "op/effects.h"
#include "op/loop_view.h"
#include "op/registry.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

bool same_type(const ir::Value* a, const ir::Value* b) {
  return a && b && a->type.is_concrete() && b->type.is_concrete() && a->type.element == b->type.element &&
         same(a->type.shape, b->type.shape);
}

// `whole` is one step, of what `element` is.
bool is_one_step(const ir::Value* whole, const ir::Value* element) {
  if (!whole->type.is_concrete() || !element->type.is_concrete()) return false;
  const Shape& shape = whole->type.shape;
  return whole->type.element == element->type.element && !shape.empty() && shape[0].is_known(1) &&
         same(Shape(shape.begin() + 1, shape.end()), element->type.shape);
}

bool runs_once(const ir::Node& node) {
  if (node.op->control != Control::kScan || node.version->since < 9) return false;
  const LoopView scan(node);
  if (scan.masked()) return false;
  for (size_t i = 0; i < scan.states(); ++i) {
    const auto [initial, before, after, final] = scan.state(i);
    if (!same_type(initial, before) || (final && !same_type(initial, after))) return false;
  }
  for (size_t i = 0; i < scan.scan_inputs(); ++i) {
    const LoopView::ScanInput in = scan.scan_input(i);
    if (in.axis != 0 || !is_one_step(in.whole, in.element)) return false;
  }
  for (size_t i = 0; i < scan.scan_outputs(); ++i) {
    const LoopView::ScanOutput out = scan.scan_output(i);
    if (out.whole && (out.axis != 0 || !out.row || !is_one_step(out.whole, out.row))) return false;
  }
  const auto& nodes = scan.body().nodes;
  return std::all_of(nodes.begin(), nodes.end(), [](const auto& n) { return is_total(*n); });
}

class Unroller {
 public:
  Unroller(ir::Graph& graph, Journal* journal) : graph_(graph), journal_(journal) {}

  void walk(ir::Region& region) {
    for (size_t at = 0; at < region.nodes.size(); ++at) {
      if (stop_requested()) return;
      for (auto& body : region.nodes[at]->regions) walk(*body);
      if (runs_once(*region.nodes[at])) at = unroll(region, at) - 1;
    }
  }

  std::unordered_map<ir::Value*, ir::Value*> replaced;

 private:
  // Returns the position behind the nodes that took the loop's place.
  size_t unroll(ir::Region& region, size_t at) {
    const std::unique_ptr<ir::Node> node = std::move(region.nodes[at]);
    region.nodes.erase(region.nodes.begin() + static_cast<std::ptrdiff_t>(at));
    note_of_loop(journal_, Change::kUnrolled, *node, *node);
    const LoopEditor scan(*node);
    for (size_t i = 0; i < scan.states(); ++i) replaced[scan.state(i).before] = scan.state(i).initial;
    for (size_t i = 0; i < scan.scan_inputs(); ++i) {
      const LoopView::ScanInput in = scan.scan_input(i);
      replaced[in.element] = without_steps(region, at, in.whole, *in.element);
    }
    for (auto& inner : scan.body().nodes) {
      inner->parent = &region;
      for (ir::Value* v : inner->outputs) {
        if (v) v->owner = &region;
      }
      region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(at++), std::move(inner));
    }
    scan.body().nodes.clear();
    for (size_t i = 0; i < scan.states(); ++i) {
      if (ir::Value* final = scan.state(i).final) replaced[final] = scan.state(i).after;
    }
    for (size_t i = 0; i < scan.scan_outputs(); ++i) {
      const auto [row, whole, axis, reverse] = scan.scan_output(i);
      if (whole) replaced[whole] = moved(region, at, "Unsqueeze", row, whole->name, whole->type);
    }
    return at;
  }

  ir::Value* without_steps(ir::Region& region, size_t& at, ir::Value* whole, const ir::Value& element) {
    if (whole->is_constant()) {
      return graph_.new_constant(element.name, whole->constant.reshaped(known_dims(element.type.shape)));
    }
    return moved(region, at, "Squeeze", whole, element.name, element.type);
  }

  ir::Value* moved(ir::Region& region, size_t& at, const char* op_name, ir::Value* from, std::string_view name,
                   const Type& type) {
    const OpDef& op = require_op(op_name);
    ir::Node* node = graph_.new_node(&region, &op, &op.newest(), std::string(name) + ":step", at++);
    graph_.add_input(node, from);
    graph_.add_input(node,
                     graph_.new_constant(std::string(name) + ":axis", Tensor::of_int64(std::array<int64_t, 1>{0})));
    return graph_.add_output(node, name, type);
  }

  ir::Graph& graph_;
  Journal* journal_;
};

}  // namespace

void unroll_single_trips(ir::Graph& graph, Journal* journal) {
  Unroller unroller(graph, journal);
  unroller.walk(graph.top());
  if (!unroller.replaced.empty()) ir::replace_uses(graph, unroller.replaced);
}

}  // namespace treadle::opt
