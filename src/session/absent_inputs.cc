#include "session/absent_inputs.h"

#include <fmt/format.h>

#include <unordered_map>

#include "op/node.h"
#include "op/place.h"
#include "op/registry.h"

namespace treadle::session {

namespace {

class Removal {
 public:
  explicit Removal(ir::Graph& graph) : graph_(graph) {}

  void remove_inputs(const std::vector<bool>& absent) {
    ir::Region& top = graph_.top();
    std::vector<ir::Value*> kept;
    std::vector<Tensor> defaults;
    for (size_t i = 0; i < top.inputs.size(); ++i) {
      if (absent[i]) {
        input_of_.emplace(top.inputs[i], top.inputs[i]->name.view());
        continue;
      }
      kept.push_back(top.inputs[i]);
      defaults.push_back(i < graph_.input_defaults.size() ? graph_.input_defaults[i] : Tensor());
    }
    top.inputs = std::move(kept);
    graph_.input_defaults = std::move(defaults);
    walk(top);
  }

 private:
  void walk(ir::Region& region) {
    std::erase_if(region.nodes, [&](const auto& node) { return hands_absence_on(*node); });
    for (const auto& node : region.nodes) {
      leave_out(*node);
      for (auto& body : node->regions) walk(*body);
    }
    for (ir::Value*& output : region.outputs) {
      if (const std::string_view input = absent(output); !input.empty())
        output = trapped_output(region, *output, input);
    }
  }

  // The name of the absent input on which `v` depends; empty if `v` has a value.
  std::string_view absent(const ir::Value* v) const {
    const auto it = input_of_.find(v);
    return it == input_of_.end() ? std::string_view() : it->second;
  }

  // Whether the node is an Identity of an absent value: its result is absent as well.
  bool hands_absence_on(const ir::Node& node) {
    if (node.op->name != "Identity" || !node.op->domain.empty()) return false;
    const std::string_view input = absent(node.inputs[0]);
    if (input.empty()) return false;
    input_of_.emplace(node.outputs[0], input);
    node.outputs[0]->producer = nullptr;
    return true;
  }

  void leave_out(ir::Node& node) {
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const std::string_view input = absent(node.inputs[i]);
      if (input.empty()) continue;
      if (!may_be_left_out(node, i)) return trap(node, input);
      node.inputs[i] = nullptr;
    }
  }

  static bool may_be_left_out(ir::Node& node, size_t i) {
    if (node.op->domain.empty() && node.op->name == "OptionalHasElement") {
      node.version = &node.op->newest();  // in the first version the input is required
      return true;
    }
    const Formal* formal = node.version->input(i);
    // An Optional without an input needs an attribute with its type.
    return formal && formal->arity == Arity::kOptional && node.op->name != "Optional";
  }

  static ir::Attributes trap_attributes(std::string_view input, const char* what) {
    ir::Attributes attributes;
    attributes.set(ir::Attribute::of("code", static_cast<int64_t>(Code::kInvalidArgument)));
    attributes.set(ir::Attribute::of("message", fmt::format("input '{}' is None, and {}", input, what)));
    return attributes;
  }

  static void trap(ir::Node& node, std::string_view input) {
    ir::Attributes attributes = trap_attributes(input, "this node needs its value");
    attributes.set(named_as(node));
    become(node, require_op("Trap", "treadle"), attributes);
    node.inputs.clear();
    node.input_count = 0;
    node.regions.clear();
  }

  ir::Value* trapped_output(ir::Region& region, const ir::Value& output, std::string_view input) {
    const OpDef& op = require_op("Trap", "treadle");
    ir::Node* node = graph_.new_node(&region, &op, &op.newest(), fmt::format("{}:output", output.name.view()));
    become(*node, op, trap_attributes(input, "it is handed out as it is"));
    return graph_.add_output(node, output.name, output.type);
  }

  ir::Graph& graph_;
  std::unordered_map<const ir::Value*, std::string_view> input_of_;
};

}  // namespace

std::unique_ptr<ir::Graph> without_inputs(const ir::Graph& graph, const std::vector<bool>& absent) {
  auto copy = graph.clone();
  Removal(*copy).remove_inputs(absent);
  return copy;
}

}  // namespace treadle::session
