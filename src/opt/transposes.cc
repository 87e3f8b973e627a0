// A product reads its operands by strides, so a transposed operand needs no copy: the permutation becomes the
// product's.
#include <unordered_set>

#include "op/registry.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

bool is(const ir::Node& node, std::string_view name, std::string_view domain = "") {
  return node.op->name == name && node.op->domain == domain;
}

// The axes that a Transpose takes, none where they are not known yet.
std::vector<int64_t> permutation(const ir::Node& transpose) {
  const auto given = transpose.attributes.get_ints("perm");
  std::vector<int64_t> axes(given.begin(), given.end());
  for (int64_t& axis : axes) axis += axis < 0 ? static_cast<int64_t>(axes.size()) : 0;
  const Type& type = transpose.inputs[0]->type;
  for (size_t i = axes.empty() && type.has_shape ? type.shape.size() : 0; i-- > 0;) {
    axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

using Values = std::unordered_set<const ir::Value*>;

// Transposed values that products alone read, as often as they are made: a loop around the product only would read in
// the wrong order in every trip.
Values operands_of_products(ir::Region& top) {
  Values transposed, others(top.outputs.begin(), top.outputs.end());
  ir::for_each_node(top, [&](ir::Node& node) {
    if (is(node, "Transpose") && !permutation(node).empty()) transposed.insert(node.outputs[0]);
    for (const ir::Value* v : node.inputs) {
      if (v && (!is(node, "MatMul") || v->owner != node.parent)) others.insert(v);
    }
    for (const auto& body : node.regions) others.insert(body->outputs.begin(), body->outputs.end());
  });
  std::erase_if(transposed, [&](const ir::Value* v) { return others.contains(v); });
  return transposed;
}

}  // namespace

void absorb_transposes(ir::Graph& graph, Journal* journal) {
  const Values candidates = operands_of_products(graph.top());
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (!is(node, "MatMul")) return;
    for (size_t i = 0; i < 2; ++i) {
      if (!candidates.contains(node.inputs[i])) continue;
      const ir::Node& transpose = *node.inputs[i]->producer;
      note(journal, Change::kAbsorbed, *node.parent, transpose, node.name);
      node.op = &require_op("PermutedMatMul", "treadle");
      node.version = &node.op->newest();
      node.attributes.set(ir::Attribute::of(i == 0 ? "perm_a" : "perm_b", permutation(transpose)));
      node.inputs[i] = transpose.inputs[0];
    }
  });
}

}  // namespace treadle::opt
