#include "session/written_model.h"

#include <fmt/format.h>

#include <unordered_set>

#include "op/loop_view.h"
#include "op/registry.h"
#include "opt/passes.h"
#include "opt/standard_form.h"
#include "opt/standard_nodes.h"
#include "plan/specialize.h"
#include "session/signature.h"

namespace treadle::session {

namespace {

// Appends an Identity to `region`.
ir::Value* copy_of(ir::Graph& graph, ir::Region& region, ir::Value* value, std::string_view name) {
  const OpVersion* const version = opt::standard_version(graph, "Identity");
  const OpDef& op = require_op("Identity");
  ir::Node* copy = graph.new_node(&region, &op, version ? version : &op.newest(), fmt::format("{}:copy", name));
  graph.add_input(copy, value);
  return graph.add_output(copy, name, value->type);
}

// After the node that copied a result is gone, the value behind `name` has another name. The value is renamed if a node
// makes it for this result alone. Otherwise a new node copies it.
void name_result(ir::Graph& graph, ir::Value*& result, const ir::Name& name,
                 std::unordered_set<const ir::Value*>& named) {
  const bool is_first = named.insert(result).second;
  if (result->name == name && is_first) return;
  if (is_first && result->producer && result->producer->parent == &graph.top()) {
    result->name = name;
    return;
  }
  result = copy_of(graph, graph.top(), result, name);
  named.insert(result);
}

void keep_names(ir::Graph& graph, const ir::Graph& before) {
  std::unordered_set<const ir::Value*> named(graph.top().inputs.begin(), graph.top().inputs.end());
  for (size_t i = 0; i < graph.top().outputs.size(); ++i) {
    ir::Value*& result = graph.top().outputs[i];
    name_result(graph, result, before.top().outputs[i]->name, named);
    if (!result->type.is_concrete()) result->type = before.top().outputs[i]->type;
  }
  for (size_t i = 0; i < graph.top().inputs.size(); ++i) {
    graph.top().inputs[i]->type = before.top().inputs[i]->type;
  }
}

template <class List>
void erase_at(List& list, size_t at) {
  for (size_t i = at; i + 1 < list.size(); ++i) list[i] = std::move(list[i + 1]);
  list.resize(list.size() - 1);
}

void erase_number(ir::Node& node, std::string_view attribute, size_t at) {
  const auto numbers = node.attributes.get_ints(attribute);
  if (at >= numbers.size()) return;
  std::vector<int64_t> others(numbers.begin(), numbers.end());
  erase_at(others, at);
  node.attributes.set(ir::Attribute::of(std::string(attribute), std::move(others)));
}

// Removes an output from a node and its bodies.
void erase_output(ir::Node& node, size_t at, size_t in_bodies) {
  if (node.op->control == Control::kScan) {
    const size_t states = LoopView(node).states();
    erase_number(node, "scan_output_axes", at - states);
    erase_number(node, "scan_output_directions", at - states);
  }
  erase_at(node.outputs, at);
  node.output_count = static_cast<uint32_t>(node.outputs.size());
  for (size_t i = at; i < node.outputs.size(); ++i) {
    if (node.outputs[i]) node.outputs[i]->output_index = static_cast<uint32_t>(i);
  }
  for (const auto& body : node.regions) {
    erase_at(body->outputs, in_bodies);
    if (in_bodies < body->output_types.size()) erase_at(body->output_types, in_bodies);
  }
}

// Inserts an Identity for each result of a body that no node of the body makes for it alone. onnxruntime computes wrong
// numbers for a Scan whose body returns an input directly.
void copy_what_bodies_hand_on(ir::Graph& graph, ir::Region& body) {
  std::unordered_set<const ir::Value*> made;
  for (ir::Value*& result : body.outputs) {
    if (!result) continue;
    const bool is_own = result->producer && result->producer->parent == &body;
    if (is_own && made.insert(result).second) continue;
    result = copy_of(graph, body, result, fmt::format("{}:result", std::string_view(result->name)));
  }
}

// Unused outputs of nodes with bodies: other programs require each output to have a name, or to be absent.
void settle_unread_outputs(ir::Graph& graph, ir::Node& node) {
  const size_t before = node.op->control == Control::kLoop ? 1 : 0;  // the body's condition
  for (size_t i = node.outputs.size(); i-- > 0;) {
    if (node.outputs[i]) continue;
    if (!node.regions.front()->outputs[i + before]) {
      erase_output(node, i, i + before);
      continue;
    }
    ir::Value* const made = graph.new_value(fmt::format("{}:{}", std::string_view(node.name), i), {}, node.parent);
    made->producer = &node;
    made->output_index = static_cast<uint32_t>(i);
    node.outputs[i] = made;
  }
}

}  // namespace

Result<std::unique_ptr<ir::Graph>> written_model(const ir::Graph& loaded, const Inputs& inputs) {
  TREADLE_ASSIGN(std::unique_ptr<ir::Graph> graph, plan::decide(loaded, knowledge_of_model(inputs)));
  opt::dequantize_weights(*graph);
  opt::join_neighbours(*graph);
  opt::fold_channel_operations(*graph);
  opt::merge_common_nodes(*graph);
  opt::remove_dead_nodes(*graph);
  ir::for_each_node(graph->top(), [&](ir::Node& node) {
    if (node.regions.empty()) return;
    settle_unread_outputs(*graph, node);
    for (const auto& body : node.regions) copy_what_bodies_hand_on(*graph, *body);
  });
  keep_names(*graph, loaded);
  return graph;
}

}  // namespace treadle::session
