#include <unordered_set>

#include "ir/graph.h"

namespace treadle::ir {

namespace {

class Verifier {
 public:
  explicit Verifier(const Graph& graph) : graph_(graph) {}

  Status region(const Region& region) {
    if (region.graph != &graph_) return error(Code::kInternal, "a region belongs to another graph");
    std::vector<const Value*> defined;
    for (const Value* input : region.inputs) {
      // An input may be a constant: specialised graphs know the contents of some inputs.
      if (!input || input->producer) return error(Code::kInternal, "an input of a region is missing or has a producer");
      TREADLE_TRY(define(input, region, defined));
    }
    for (const auto& n : region.nodes) {
      if (n->parent != &region) return error(Code::kInternal, "the node's parent is another region").in(n->name);
      Status status = node(*n, defined);
      if (!status.ok()) return status.place().empty() ? std::move(status).in(n->name) : std::move(status);
    }
    for (const Value* output : region.outputs) {
      if (output || !region.parent_node) TREADLE_TRY(use(output));
    }
    for (const Value* value : defined) visible_.erase(value);
    return {};
  }

 private:
  Status node(const Node& node, std::vector<const Value*>& defined) {
    if (node.input_count != node.inputs.size() || node.output_count != node.outputs.size()) {
      return error(Code::kInternal, "counts say {} inputs and {} outputs, but there are {} and {}", node.input_count,
                   node.output_count, node.inputs.size(), node.outputs.size());
    }
    for (const Value* input : node.inputs) {
      if (input) TREADLE_TRY(use(input));
    }
    for (const auto& inner : node.regions) {
      if (inner->parent_node != &node) return error(Code::kInternal, "a body's parent is another node");
      TREADLE_TRY(region(*inner));
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value* output = node.outputs[i];
      if (!output) continue;
      if (output->producer != &node || output->output_index != i) {
        return error(Code::kInternal, "output {} (\"{}\") is not linked to its node", i, output->name);
      }
      TREADLE_TRY(define(output, *node.parent, defined));
    }
    return {};
  }

  Status define(const Value* value, const Region& region, std::vector<const Value*>& defined) {
    if (value->owner != &region) return error(Code::kInternal, "\"{}\" is owned by another region", value->name);
    if (!visible_.insert(value).second) return error(Code::kInternal, "\"{}\" is defined twice", value->name);
    defined.push_back(value);
    return {};
  }

  Status use(const Value* value) const {
    if (!value) return error(Code::kInternal, "an output of a region is missing");
    if (value->is_constant() || visible_.contains(value)) return {};
    return error(Code::kInternal, "\"{}\" is used where it is not defined, or before it is", value->name);
  }

  const Graph& graph_;
  std::unordered_set<const Value*> visible_;
};

}  // namespace

Status verify(const Graph& graph) {
  const size_t inputs = graph.top().inputs.size(), defaults = graph.input_defaults.size();
  if (defaults != 0 && defaults != inputs) {
    return error(Code::kInternal, "{} inputs have {} defaults", inputs, defaults);
  }
  return Verifier(graph).region(graph.top());
}

}  // namespace treadle::ir
