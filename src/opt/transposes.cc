// A Transpose that only moves axes of one element becomes a Reshape, which needs no copy. A transposed operand of a
// product needs no copy either, since products read by strides: the permutation moves into the product.
#include <unordered_set>

#include "op/node.h"
#include "op/registry.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

// The permutation of a Transpose; empty if it is unknown.
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

// Transposed values that only products read, and that are made as often as they are read. If only the product were
// inside of a loop, it would read in the slow order in every iteration.
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

bool keeps_elements_in_order(const ir::Node& transpose) {
  const Shape& shape = transpose.inputs[0]->type.shape;
  int64_t last = -1;
  for (const int64_t axis : permutation(transpose)) {
    if (shape[static_cast<size_t>(axis)].is_known(1)) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

// The sizes operand of a Reshape to `shape`; empty if more than one size is unknown.
std::vector<int64_t> sizes_of(const Shape& shape) {
  std::vector<int64_t> sizes;
  bool any_unknown = false;
  for (const Dim& d : shape) {
    if ((d.is_known() && d.value() == 0) || (!d.is_known() && any_unknown)) return {};
    any_unknown |= !d.is_known();
    sizes.push_back(d.is_known() ? d.value() : -1);
  }
  return sizes;
}

}  // namespace

void reshape_transposes(ir::Graph& graph, Remarks* remarks) {
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (!is(node, "Transpose") || !node.inputs[0]->type.has_shape || !node.outputs[0]->type.has_shape) return;
    if (!keeps_elements_in_order(node)) return;
    const std::vector<int64_t> sizes = sizes_of(node.outputs[0]->type.shape);
    if (sizes.empty()) return;
    note(remarks, Change::kElided, *node.parent, node);
    become(node, require_op("Reshape"));
    node.attributes.set(ir::Attribute::of("allowzero", 0));
    graph.add_input(&node, graph.new_constant(std::string(node.name) + ":sizes", Tensor::of_int64(sizes)));
  });
}

void fuse_transposes(ir::Graph& graph, Remarks* remarks) {
  if (!has_node(graph.top(), [](const ir::Node& node) { return is(node, "Transpose"); })) return;
  const Values candidates = operands_of_products(graph.top());
  ir::for_each_node(graph.top(), [&](ir::Node& node) {
    if (!is(node, "MatMul")) return;
    for (size_t i = 0; i < 2; ++i) {
      if (!candidates.contains(node.inputs[i])) continue;
      const ir::Node& transpose = *node.inputs[i]->producer;
      note(remarks, Change::kFused, *node.parent, transpose, node.name);
      become(node, require_op("PermutedMatMul", "treadle"), node.attributes);
      node.attributes.set(ir::Attribute::of(i == 0 ? "perm_a" : "perm_b", permutation(transpose)));
      node.inputs[i] = transpose.inputs[0];
    }
  });
}

}  // namespace treadle::opt
