#include "model/gradients.h"

#include <unordered_map>
#include <unordered_set>

#include "op/op_def.h"
#include "op/registry.h"

namespace treadle::model {

namespace {

class Attachment {
 public:
  Attachment(ir::Graph& graph, ir::Node& node, size_t& most_copied)
      : graph_(graph), node_(node), around_(*node.parent), most_copied_(most_copied) {}

  Status run() {
    const auto xs = node_.attributes.get_strings("xs"), zs = node_.attributes.get_strings("zs");
    if (xs.size() != node_.outputs.size() || xs.size() + zs.size() != node_.inputs.size()) {
      return error(Code::kInvalidModel, "Gradient has {} inputs and {} outputs, expected those of {} xs and {} zs",
                   node_.inputs.size(), node_.outputs.size(), xs.size(), zs.size());
    }
    name_values();
    TREADLE_ASSIGN(ir::Value* const y, find(node_.attributes.get_string("y")));
    body_ = graph_.new_region(&node_, "function");
    for (size_t i = 0; i < node_.inputs.size(); ++i) {
      TREADLE_ASSIGN(ir::Value* const from, find(i < xs.size() ? xs[i] : zs[i - xs.size()]));
      if (!node_.inputs[i]) return error(Code::kInvalidModel, "input {} of Gradient is left out", i);
      ir::Value* argument = graph_.new_value(node_.name + "/" + std::string(from->name), from->type, body_);
      body_->inputs.push_back(argument);
      copies_.emplace(from, argument);
    }
    TREADLE_TRY(mark_needed(y));
    if (needed_.size() > most_copied_) {
      return error(Code::kLimit,
                   "the graphs that the model's Gradients differentiate have more nodes than may be copied");
    }
    most_copied_ -= needed_.size();
    for (const auto& node : around_.nodes) {
      if (needed_.contains(node.get())) TREADLE_TRY(copy(*node));
    }
    body_->outputs.push_back(copy_of(y));
    const OpDef& derivative = require_op("Derivative", "treadle");
    node_.op = &derivative;
    node_.version = &derivative.newest();
    node_.attributes = {};
    return {};
  }

 private:
  void name_values() {
    for (ir::Value* v : around_.inputs) values_.emplace(v->name, v);
    for (const auto& node : around_.nodes) {
      for (ir::Value* v : node->outputs) {
        if (v) values_.emplace(v->name, v);
      }
      for (ir::Value* v : node->inputs) {
        if (v) values_.emplace(v->name, v);
      }
    }
  }

  Result<ir::Value*> find(std::string_view name) const {
    const auto it = values_.find(name);
    if (it != values_.end()) return it->second;
    return error(Code::kInvalidModel, "\"{}\", which Gradient names, is no value of the graph that it stands in", name);
  }

  // Marks the nodes that compute v from the arguments.
  Status mark_needed(const ir::Value* v) {
    std::vector<const ir::Value*> open{v};
    while (!open.empty()) {
      const ir::Value* next = open.back();
      open.pop_back();
      const ir::Node* producer = next->producer;
      if (copies_.contains(next) || !producer || producer->parent != &around_) continue;
      if (producer == &node_) {
        return error(Code::kInvalidModel, "\"{}\", which Gradient differentiates, is made of Gradient's own results",
                     v->name);
      }
      if (!needed_.insert(producer).second) continue;
      for (const ir::Value* input : producer->inputs) {
        if (input) open.push_back(input);
      }
    }
    return {};
  }

  ir::Value* copy_of(ir::Value* v) const {
    const auto it = copies_.find(v);
    return it == copies_.end() ? v : it->second;
  }

  Status copy(const ir::Node& node) {
    if (!node.regions.empty()) {
      return error(Code::kNotImplemented, "Gradient of {}, which has a body: only graphs without are differentiated",
                   node.op->name);
    }
    ir::Node* made = graph_.new_node(body_, node.op, node.version, node_.name + "/" + std::string(node.name));
    made->attributes = node.attributes;
    made->parsed = node.parsed;
    for (ir::Value* v : node.inputs) graph_.add_input(made, v ? copy_of(v) : nullptr);
    for (ir::Value* v : node.outputs) {
      if (!v) {
        graph_.add_absent_output(made);
        continue;
      }
      ir::Value* output = graph_.add_output(made, node_.name + "/" + std::string(v->name), v->type);
      copies_.emplace(v, output);
    }
    return {};
  }

  ir::Graph& graph_;
  ir::Node& node_;
  ir::Region& around_;
  size_t& most_copied_;
  ir::Region* body_ = nullptr;
  std::unordered_map<std::string_view, ir::Value*> values_;
  std::unordered_map<const ir::Value*, ir::Value*> copies_;
  std::unordered_set<const ir::Node*> needed_;
};

}  // namespace

Status attach_gradients(ir::Graph& graph, size_t most_copied) {
  std::vector<ir::Node*> found;
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (node.op->name == "Gradient" && node.op->domain == "ai.onnx.preview.training") found.push_back(&node);
  });
  for (ir::Node* node : found) {
    if (Status status = Attachment(graph, *node, most_copied).run(); !status.ok()) {
      return std::move(status).in(std::string(node->name) + " (ai.onnx.preview.training.Gradient)");
    }
  }
  return {};
}

}  // namespace treadle::model
