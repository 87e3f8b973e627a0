// Elementwise nodes wait: each is put off until somebody needs it, so that those that belong together have met by then.
// Other nodes keep their order. When a node (or the end of the region) needs a value that waits, the whole group around
// it runs: the waiting nodes over as many elements that are connected with it by values. That is always possible:
// all that waiting nodes need from others has been computed, and a path from one member to another that leaves the
// group would have to go through a waiting node over another number of elements; broadcasting makes that number grow
// only, so it cannot come back.
//
// Nodes that can fail or are random never wait, so of several errors the first in the model's order is still the one
// that is met. Reshape and its like wait with what they look at: they are another name for its memory.
#include "plan/fusion.h"

#include <algorithm>
#include <unordered_set>

#include "op/effects.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"

namespace treadle::plan {

namespace {

constexpr size_t kMaxMembers = 24;

bool is_held(const ir::Value* v) {
  return v && v->type.is_concrete() && kernels::FusedBuilder::can_hold(v->type.element) &&
         v->type.shape.size() <= kernels::FusedPlan::kMaxDims;
}

int64_t count_of(const ir::Value& v) {
  return element_count_unchecked(known_dims(v.type.shape));
}

bool is_alias(const ir::Node& node) {
  return node.op->alias_input >= 0;
}

const ir::Value* aliased(const ir::Node& node) {
  return node.inputs[static_cast<size_t>(node.op->alias_input)];
}

}  // namespace

// The nodes of one region that wait.
class Pending {
 public:
  explicit Pending(Fusion& fusion) : fusion_(fusion) {}

  void visit(const ir::Node& node) {
    if (waits(node)) {
      join(node);
      return;
    }
    for (const ir::Value* v : node.inputs) need(v);
    for (const auto& body : node.regions) {
      for (const ir::Value* v : ir::captures(*body)) need(v);
    }
    units_.push_back({{&node}, false});
  }

  std::vector<Unit> finish() {
    for (size_t i = 0; i < seen_.size(); ++i) need(seen_[i]->outputs[0]);
    return std::move(units_);
  }

 private:
  bool is_waiting(const ir::Value* v) const { return v && v->producer && group_of_.contains(v->producer); }

  bool waits(const ir::Node& node) {
    if (is_alias(node)) {
      return node.outputs[0] && is_held(node.outputs[0]) && is_waiting(aliased(node)) &&
             std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                         [](const ir::Value* v) { return !v || v->is_constant(); });
    }
    return fusion_.is_elementwise(node);
  }

  void need(const ir::Value* v) {
    if (is_waiting(v)) run_group(*v->producer);
  }

  void run_group(const ir::Node& wanted) {
    const size_t index = group_of_.at(&wanted);
    std::vector<size_t> places = std::move(groups_[index]);
    std::sort(places.begin(), places.end());  // the order of the model
    std::vector<const ir::Node*> group;
    for (const size_t place : places) group.push_back(seen_[place]);
    for (const ir::Node* node : group) group_of_.erase(node);
    for (const ir::Node* node : group) {
      for (const ir::Value* v : node->inputs) need(v);  // of other numbers of elements
    }
    emit(group);
  }

  // A node that starts to wait becomes connected with those over as many elements that it takes values from.
  void join(const ir::Node& node) {
    size_t index = groups_.size();
    groups_.push_back({seen_.size()});
    seen_.push_back(&node);
    group_of_[&node] = index;
    const int64_t count = count_of(*node.outputs[0]);
    for (const ir::Value* v : node.inputs) {
      if (is_waiting(v) && count_of(*v) == count) index = merge(index, group_of_.at(v->producer));
    }
  }

  // The smaller group moves, so that no node moves more often than groups double.
  size_t merge(size_t a, size_t b) {
    if (a == b) return a;
    if (groups_[a].size() < groups_[b].size()) std::swap(a, b);
    for (const size_t place : groups_[b]) group_of_[seen_[place]] = a;
    groups_[a].insert(groups_[a].end(), groups_[b].begin(), groups_[b].end());
    groups_[b] = {};
    return a;
  }

  // One unit, or several where the group is too large for one kernel. An alias stays with what it looks at; of a unit
  // before, it is a unit of its own.
  void emit(const std::vector<const ir::Node*>& group) {
    size_t at = 0;
    while (at < group.size()) {
      Unit unit;
      size_t operations = 0;
      std::unordered_set<const ir::Value*> made;
      for (; at < group.size() && (operations < kMaxMembers || is_alias(*group[at])); ++at) {
        const ir::Node* node = group[at];
        if (is_alias(*node) && !made.contains(aliased(*node))) {
          units_.push_back({{node}, false});
          continue;
        }
        made.insert(node->outputs[0]);
        unit.nodes.push_back(node);
        if (!is_alias(*node)) ++operations;
      }
      unit.fused = operations > 1;
      if (!unit.nodes.empty()) units_.push_back(std::move(unit));
    }
  }

  Fusion& fusion_;
  std::vector<const ir::Node*> seen_;                     // all that have waited, in the order of the model
  std::unordered_map<const ir::Node*, size_t> group_of_;  // of those that wait still
  std::vector<std::vector<size_t>> groups_;               // connected ones: their places in seen_, in any order
  std::vector<Unit> units_;
};

// ---------------------------------------------------------------------------------------------------------------------

uint32_t run_fused(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& plan = *static_cast<const kernels::FusedPlan*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[plan.bound]]);
  return parallel_kernel(plan.tile_count(), plan.tile_ns(), [&](int64_t begin, int64_t end, int worker) {
    std::byte* table[kernels::FusedPlan::kMaxPlaces];
    for (size_t i = 0; i < plan.bound; ++i) table[i] = static_cast<std::byte*>(slots[operands[i]]);
    return plan.run_tiles(table, scratch + static_cast<size_t>(worker) * plan.scratch_bytes(), begin, end);
  });
}

Fusion::Fusion(const ir::Graph& graph, bool enabled) : enabled_(enabled) {
  auto count = [&](const ir::Value* v) {
    if (v) ++uses_[v];
  };
  for (const ir::Value* v : graph.top().outputs) count(v);
  ir::for_each_node(graph.top(), [&](const ir::Node& node) {
    for (const ir::Value* v : node.inputs) count(v);
    for (const auto& body : node.regions) {
      for (const ir::Value* v : body->outputs) count(v);
    }
  });
}

bool Fusion::is_elementwise(const ir::Node& node) {
  const OpDef& op = *node.op;
  if (!enabled_) return false;
  if (!op.elementwise || !op.prepare || op.effects == Effects::kRandom || is_alias(node)) {
    return false;
  }
  if (node.inputs.empty() || node.outputs.size() != 1 || !is_held(node.outputs[0])) return false;
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_held)) return false;
  if (can_fail(node) || count_of(*node.outputs[0]) < 1) return false;
  const ElementwiseForm form = elementwise_form(node);
  if (form.kind == ElementwiseForm::Kind::kNone || form.op == kernels::ElementwiseOp::kClip) return false;
  forms_.emplace(&node, form);
  return true;
}

std::vector<Unit> Fusion::units(const ir::Region& region) {
  Pending pending(*this);
  for (const auto& node : region.nodes) pending.visit(*node);
  return pending.finish();
}

namespace {

// The values of a group while its plan is put together.
struct Members {
  struct Input {
    const ir::Value* value;
    Dims strides;
    kernels::FusedBuilder::Value made;
  };

  FusedGroup& group;
  std::vector<Input> inputs;
  std::unordered_map<const ir::Value*, kernels::FusedBuilder::Value> made;
  std::unordered_map<const ir::Value*, const ir::Value*> base;  // of aliases
  std::unordered_map<const ir::Value*, size_t> used;            // inside

  const ir::Value* resolve(const ir::Value* v) const {
    const auto it = base.find(v);
    return it == base.end() ? v : it->second;
  }

  // `v` as an argument of an operation with a result of `dims`.
  kernels::FusedBuilder::Value argument(const ir::Value* v, const Dims& dims, int64_t axis) {
    if (const auto it = made.find(resolve(v)); it != made.end()) return it->second;
    Dims strides = broadcast_strides(operand_of(*v), dims, axis);
    for (const Input& input : inputs) {
      if (input.value == v && input.strides == strides) return input.made;
    }
    inputs.push_back({v, strides, group.builder.input(v->type.element, dims, strides)});
    group.inputs.push_back(v);
    return inputs.back().made;
  }
};

}  // namespace

FusedGroup Fusion::build(const Unit& unit) const {
  FusedGroup group{kernels::FusedBuilder(static_cast<size_t>(count_of(*unit.nodes[0]->outputs[0]))), {}, {}, {}};
  Members members{group, {}, {}, {}, {}};
  for (const ir::Node* node : unit.nodes) {
    const ir::Value* result = node->outputs[0];
    for (const ir::Value* v : node->inputs) ++members.used[v];
    if (is_alias(*node)) {
      members.base[result] = members.resolve(aliased(*node));
      continue;
    }
    const ElementwiseForm& form = forms_.at(node);
    const Dims dims = known_dims(result->type.shape);
    if (form.kind == ElementwiseForm::Kind::kConversion) {
      const auto x = members.argument(node->inputs[0], dims, -1);
      members.made[result] = group.builder.convert(form.converter, x, result->type.element);
      continue;
    }
    kernels::FusedBuilder::Value arguments[3];
    const size_t count = kernels::info(form.op).inputs;
    for (size_t i = 0; i < count; ++i) {
      arguments[i] = members.argument(node->inputs[form.arguments[i]], dims, i == 1 ? form.axis : -1);
    }
    members.made[result] = group.builder.apply(form.op, std::span(arguments, count), form.params);
  }
  std::unordered_set<const ir::Value*> wanted;
  for (const ir::Node* node : unit.nodes) {
    const ir::Value* result = node->outputs[0];
    const auto uses = uses_.find(result);
    if (uses == uses_.end() || uses->second == members.used[result]) continue;
    const ir::Value* base = members.resolve(result);
    if (wanted.insert(base).second) {
      group.builder.output(members.made.at(base));
      group.outputs.push_back(base);
    }
    if (base != result) group.aliases.emplace_back(result, base);
  }
  return group;
}

}  // namespace treadle::plan
