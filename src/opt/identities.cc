// A node is an identity if its only output equals its first input with the same type: Identity; a Cast to the same
// type; Reshape and similar operators that keep the sizes; a Transpose that moves nothing; Concat, Sum, Max, Min and
// Mean of one operand. Whether sizes agree must be known, so the pass runs on specialised graphs.
#include <unordered_map>

#include "op/effects.h"
#include "op/op_def.h"
#include "opt/match.h"
#include "opt/passes.h"

namespace treadle::opt {

namespace {

bool same_type(const ir::Value* a, const ir::Value* b) {
  return a->type.is_concrete() && b->type.is_concrete() && a->type.element == b->type.element &&
         same(a->type.shape, b->type.shape);
}

bool keeps_order(const ir::Node& node) {
  const auto perm = node.attributes.get_ints("perm");
  const auto rank = static_cast<int64_t>(node.inputs[0]->type.shape.size());
  for (int64_t d = 0; d < rank; ++d) {
    if ((perm.empty() ? rank - 1 - d : perm[static_cast<size_t>(d)]) != d) return false;
  }
  return true;
}

bool is_identity(const ir::Node& node) {
  const OpDef& op = *node.op;
  if (!op.domain.empty() || node.inputs.empty() || !node.inputs[0] || node.outputs.empty() || !node.outputs[0]) {
    return false;
  }
  for (size_t i = 1; i < node.outputs.size(); ++i) {
    if (node.outputs[i]) return false;
  }
  if (is(node, "Identity")) return true;
  if (!same_type(node.inputs[0], node.outputs[0]) || !knows_shape_inputs(node)) return false;
  if (op.alias_input == 0 || is_any(&node, {"Cast", "CastLike", "Expand"})) return true;
  if (is(node, "Transpose")) return keeps_order(node);
  return is_any(&node, {"Concat", "Sum", "Max", "Min", "Mean"}) && node.inputs.size() == 1;
}

}  // namespace

void remove_identities(ir::Graph& graph, Remarks* remarks) {
  std::unordered_map<ir::Value*, ir::Value*> replaced;
  erase_nodes(graph.top(), [&](const ir::Region& region, const ir::Node& node) {
    if (!is_identity(node)) return false;
    note(remarks, Change::kElided, region, node);
    replaced[node.outputs[0]] = node.inputs[0];
    return true;
  });
  ir::replace_uses(graph, replaced);
}

}  // namespace treadle::opt
