// Replaces a node by simpler nodes if the node's operator defines them (OpDef::expand). The simpler nodes join the
// elementwise groups and reductions around them, and native code has no kernel to call. The operator's file defines the
// nodes; this pass puts them into the graph.
//
// Nodes that a convolution will absorb (opt/convolution.h) stay whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <unordered_map>

#include "infer/inference.h"
#include "opt/builder.h"
#include "opt/convolution.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

class Expander {
 public:
  Expander(ir::Graph& graph, Remarks* remarks) : graph_(graph), remarks_(remarks), uses_(graph.top()) {}

  void run() {
    rewrite_nodes(graph_.top(), [this](ir::Region& region, size_t at) { return visit(region, at); });
    ir::replace_uses(graph_, replaced_);
  }

 private:
  bool may_expand(const ir::Region& region, const ir::Node& node) const {
    if (!node.op->expand || node.outputs.size() != 1 || !node.outputs[0]) return false;
    if (node.op->expands_in_loops && !loop_around(region)) return false;
    const auto is_known = [](const ir::Value* v) { return !v || v->type.is_concrete(); };
    return is_known(node.outputs[0]) && std::all_of(node.inputs.begin(), node.inputs.end(), is_known) &&
           !goes_into_convolution(node, uses_);
  }

  size_t visit(ir::Region& region, size_t at) {
    ir::Node& node = *region.nodes[at];
    if (!may_expand(region, node)) return at;
    std::vector<const Type*> types;
    std::vector<const Tensor*> values;
    for (const ir::Value* v : node.inputs) {
      types.push_back(v ? &v->type : nullptr);
      values.push_back(v && v->is_constant() ? &v->constant : nullptr);
    }
    ir::Graph parts;
    LowerContext context(node, types, values, parts);
    if (!node.op->expand(context) || !Inference({.fold = false}).infer(parts.top()).ok()) return at;
    return replace(region, at, parts);
  }

  // Puts `parts` in the place of the node; returns the position of the last part.
  size_t replace(ir::Region& region, size_t at, ir::Graph& parts) {
    const std::unique_ptr<ir::Node> node = take_out(region, at);
    for (size_t i = 0; i < node->inputs.size(); ++i) {
      ir::Value* inside = parts.top().inputs[i];
      if (!inside) continue;
      inside->constant = {};
      replaced_[inside] = node->inputs[i];
    }
    replaced_[node->outputs[0]] = parts.top().outputs[0];
    node->outputs[0]->producer = nullptr;
    Builder build(graph_, region, at);
    std::vector<std::string_view> made;
    for (auto& part : graph_.splice(parts, &region)) {
      ir::replace_uses(*part, replaced_);
      made.push_back(part->op->name);
      build.adopt(std::move(part));
    }
    note(remarks_, Change::kRestated, region, *node, fmt::format("{}", fmt::join(made, ", ")));
    return build.at() - 1;
  }

  ir::Graph& graph_;
  Remarks* remarks_;
  const Uses uses_;  // counted before any node was replaced
  std::unordered_map<ir::Value*, ir::Value*> replaced_;
};

}  // namespace

void expand_nodes(ir::Graph& graph, Remarks* remarks) {
  if (!has_node(graph.top(), [](const ir::Node& node) { return node.op->expand != nullptr; })) return;
  Expander(graph, remarks).run();
}

}  // namespace treadle::opt
