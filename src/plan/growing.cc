#include "plan/growing.h"

#include <algorithm>

#include "op/loop_view.h"

namespace treadle::plan {

namespace {

// A loop state, its successor, and the values that share their memory, in one loop.
struct Growing {
  const ir::Value* in = nullptr;
  const ir::Value* out = nullptr;
  const ir::Node* node = nullptr;  // appends to `in`, and makes `out`
  bool picks = false;              // appends to rows that it picks from `in`
  bool as_columns = false;

  bool is_one(const ir::Value* v) const { return v == in || v == out; }
};

bool is_numeric(const ir::Value* v) {
  return !v || (v->type.is_tensor() && v->type.element != ElementType::kUndefined && !is_string(v->type.element));
}

// The axis of `node`'s operand i that a product reads as columns of its right-hand side; -1 if it is no such operand.
int64_t columns_axis(const ir::Node& node, size_t i) {
  if (node.op->columns != i) return -1;
  const ir::Value* b = node.inputs[i];
  if (!b->type.has_shape || b->type.rank() < 2) return -1;
  const auto axes = node.attributes.get_ints("perm_b");
  return axes.empty() ? b->type.rank() - 1 : axes.back();
}

int64_t grown_axis(const ir::Node& node) {
  const int64_t axis = node.attributes.get_int("axis", 1);
  return axis < 0 && node.outputs[0]->type.has_shape ? axis + node.outputs[0]->type.rank() : axis;
}

// Whether `node` reads the values only in ways that accept any strides.
bool takes_strides(const ir::Node& node, Growing& growing) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!growing.is_one(node.inputs[i])) continue;
    if (&node == growing.node && i == 0) continue;
    // Rows of the state are moved within its memory, so another reader could read wrong rows.
    if (growing.picks && node.inputs[i] == growing.in) return false;
    if (!node.op->prepare || node.op->appends || node.op->alias_input >= 0 || i >= 64 ||
        !(node.op->strided_inputs >> i & 1))
      return false;
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_numeric)) return false;
    if (!std::all_of(node.outputs.begin(), node.outputs.end(), is_numeric)) return false;
    growing.as_columns |= columns_axis(node, i) == grown_axis(*growing.node);
  }
  return true;
}

bool takes_strides(const ir::Region& region, Growing& growing) {
  for (const auto& node : region.nodes) {
    if (!takes_strides(*node, growing)) return false;
    for (const auto& inner : node->regions) {
      if (!takes_strides(*inner, growing)) return false;
      const auto& outputs = inner->outputs;
      if (std::any_of(outputs.begin(), outputs.end(), [&](const ir::Value* v) { return growing.is_one(v); })) {
        return false;
      }
    }
  }
  return true;
}

Growth growth_of(const LoopView& loop, size_t state) {
  const auto [initial, before, made, final] = loop.state(state);
  const ir::Region& body = loop.body();
  Growing growing{before, made, made ? made->producer : nullptr};
  const ir::Node* node = growing.node;
  growing.picks = node && node->attributes.has("pick_axis");
  if (!growing.in || !node || node->parent != &body || !node->op->appends || node->inputs[0] != growing.in)
    return Growth::kNone;
  if (!std::all_of(node->inputs.begin(), node->inputs.end(), is_numeric)) return Growth::kNone;
  const size_t own = loop.signature().state_body_output(state);
  for (size_t i = 0; i < body.outputs.size(); ++i) {
    if (i != own && growing.is_one(body.outputs[i])) return Growth::kNone;
  }
  if (!takes_strides(body, growing)) return Growth::kNone;
  return growing.as_columns ? Growth::kColumns : Growth::kRows;
}

}  // namespace

void find_growing(Program& program) {
  for (Loop& loop : program.loops) {
    if (loop.is_scan) continue;
    const LoopView view(*loop.node);
    for (size_t i = 0; i < loop.states.size(); ++i) {
      LoopState& state = loop.states[i];
      if (state.planned) continue;
      const Growth growth = growth_of(view, i);
      if (growth == Growth::kNone) continue;
      const auto node = std::find_if(program.dynamic.begin(), program.dynamic.end(),
                                     [&](const DynamicNode& n) { return n.node == view.state(i).after->producer; });
      if (node == program.dynamic.end()) continue;
      node->growth = growth;
      state.grows = true;
    }
  }
}

}  // namespace treadle::plan
