// A stream that is pushed step by step runs its loops once. What could fail stays a loop: its errors name the trip.
#include "opt/single_trips.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "base/stop.h"
#include "op/effects.h"
#include "op/op_def.h"
#include "op/registry.h"
#include "op/scan_attributes.h"

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
  if (node.op->control != Control::kScan) return false;
  const ir::Region& body = *node.region("body");
  const auto scan = read_scan(node, node.inputs.size(), body.outputs.size());
  if (!scan.ok() || scan->inputs.empty() || scan->masked) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const bool is_state = i < scan->states;
    if (!is_state && scan->inputs[i - scan->states].axis != 0) return false;
    if (!node.inputs[i] || !body.inputs[i]) return false;
    if (is_state ? !same_type(node.inputs[i], body.inputs[i]) : !is_one_step(node.inputs[i], body.inputs[i])) {
      return false;
    }
  }
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.outputs[i]) continue;
    const bool is_state = i < scan->states;
    if (!is_state && scan->outputs[i - scan->states].axis != 0) return false;
    if (!body.outputs[i]) return false;
    if (is_state ? !same_type(node.inputs[i], body.outputs[i]) : !is_one_step(node.outputs[i], body.outputs[i])) {
      return false;
    }
  }
  return std::all_of(body.nodes.begin(), body.nodes.end(), [](const auto& n) { return is_total(*n); });
}

class Unroller {
 public:
  explicit Unroller(ir::Graph& graph) : graph_(graph) {}

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
    ir::Region& body = *node->region("body");
    const size_t states = read_scan(*node, node->inputs.size(), body.outputs.size())->states;
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      ir::Value* given = node->inputs[i];
      if (i >= states) given = without_steps(region, at, given, *body.inputs[i]);
      replaced[body.inputs[i]] = given;
    }
    for (auto& inner : body.nodes) {
      inner->parent = &region;
      for (ir::Value* v : inner->outputs) {
        if (v) v->owner = &region;
      }
      region.nodes.insert(region.nodes.begin() + static_cast<std::ptrdiff_t>(at++), std::move(inner));
    }
    body.nodes.clear();
    for (size_t i = 0; i < node->outputs.size(); ++i) {
      if (!node->outputs[i]) continue;
      ir::Value* made = body.outputs[i];
      if (i >= states) made = moved(region, at, "Unsqueeze", made, node->outputs[i]->name, node->outputs[i]->type);
      replaced[node->outputs[i]] = made;
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
};

}  // namespace

void unroll_single_trips(ir::Graph& graph, Journal*) {
  Unroller unroller(graph);
  unroller.walk(graph.top());
  if (!unroller.replaced.empty()) ir::replace_uses(graph, unroller.replaced);
}

}  // namespace treadle::opt
