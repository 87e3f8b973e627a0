// A loop that picks rows of a state and appends to them:
//
//   g = Gather(s, rows, axis = b); s' = Concat(g, new, axis = a)   becomes   s' = PickedConcat(s, rows, new)
//
// Beam searches pass on keys and values in this way. A state that has room for new elements then keeps it
// (plan/growing.h), and only rows that another row replaces are moved. s and g must have no other reader, because rows
// are moved within the memory of s.
#include <algorithm>

#include "op/axes.h"
#include "op/loop_view.h"
#include "opt/builder.h"
#include "opt/match.h"
#include "opt/passes.h"
#include "opt/uses.h"

namespace treadle::opt {

namespace {

int64_t axis_of(const ir::Node& node, int64_t otherwise, int64_t rank) {
  return from_front(node.attributes.get_int("axis", otherwise), rank);
}

// The Gather behind the operand to which `concat` appends, if it picks rows of the state for `concat` alone.
ir::Node* picks_rows(const ir::Node& concat, const LoopView::State& state, const ir::Region& body, const Uses& uses) {
  ir::Node* pick = concat.inputs[0] ? concat.inputs[0]->producer : nullptr;
  if (!is(pick, "Gather") || pick->parent != &body || pick->inputs[0] != state.before) return nullptr;
  const ir::Value* rows = pick->inputs[1];
  if (!uses.once(state.before) || !uses.once(pick->outputs[0]) || rows->type.rank() != 1) return nullptr;
  if (is_string(state.before->type.element) || !state.before->type.has_shape) return nullptr;
  const int64_t rank = state.before->type.rank();
  return axis_of(*pick, 0, rank) != axis_of(concat, 1, rank) ? pick : nullptr;
}

void append_to_picked(ir::Graph& graph, ir::Region& body, ir::Node& concat, ir::Node& pick, Remarks* remarks) {
  const int64_t rank = pick.inputs[0]->type.rank();
  note(remarks, Change::kFused, body, pick, concat.name);
  const auto at = std::ranges::find_if(body.nodes, [&](const auto& node) { return node.get() == &concat; });
  Builder build(graph, body, static_cast<size_t>(at - body.nodes.begin()));
  std::vector<ir::Value*> inputs{pick.inputs[0], pick.inputs[1]};
  inputs.insert(inputs.end(), concat.inputs.begin() + 1, concat.inputs.end());
  ir::Value* old = concat.outputs[0];
  ir::Value* made = build.call(
      "PickedConcat", inputs, old->type, std::string(concat.name),
      {ir::Attribute::of("axis", axis_of(concat, 1, rank)), ir::Attribute::of("pick_axis", axis_of(pick, 0, rank))});
  ir::replace_uses(graph, {{old, made}});
  std::erase_if(body.nodes, [&](const auto& node) { return node.get() == &concat || node.get() == &pick; });
}

void visit(ir::Graph& graph, ir::Node& node, Remarks* remarks) {
  const LoopView loop(node);
  const ir::Region& body = loop.body();
  if (loop.is_scan() || !has_node(body, [](const ir::Node& n) { return is(n, "Gather"); })) return;
  const Uses uses(body);
  for (size_t i = 0; i < loop.states(); ++i) {
    const LoopView::State state = loop.state(i);
    ir::Node* concat = state.after && state.after->owner == &body ? state.after->producer : nullptr;
    if (!is(concat, "Concat") || concat->inputs.size() < 2) continue;
    if (ir::Node* pick = picks_rows(*concat, state, body, uses)) {
      append_to_picked(graph, *concat->parent, *concat, *pick, remarks);
    }
  }
}

}  // namespace

void append_to_picked_rows(ir::Graph& graph, Remarks* remarks) {
  visit_nodes(graph.top(), [&](ir::Region& region, size_t at) {
    if (is_loop(*region.nodes[at])) visit(graph, *region.nodes[at], remarks);
    return at;
  });
}

}  // namespace treadle::opt
