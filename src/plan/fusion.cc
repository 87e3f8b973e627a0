// Elementwise nodes wait: a node runs only when another needs its result, so that nodes that belong to one group have
// met by then. Other nodes keep their order. When a node (or the end of the region) needs a value of a waiting node,
// the whole group of that node runs: all waiting nodes over the same number of elements that are connected with it by
// values. This is always possible. Everything that waiting nodes need from other nodes has been computed. A path from
// one member to another that leaves the group would lead through a waiting node over another number of elements;
// broadcasting only makes that number grow, so the path cannot come back.
//
// Nodes that can fail or are random never wait, so the run still meets the first error in the model's order. Reshape
// and similar aliases wait with their operand, because they share its memory.
//
// A node that only views its operand in another way (Slice, Transpose) runs if a node needs its result itself; groups
// read the operand instead. A reduction waits with the group that makes its operand, so that the elements need not be
// in memory. A node that needs a reduction's result, or views an operand that waits, makes that group run at once: a
// group never waits for itself.
#include "plan/fusion.h"

#include <algorithm>
#include <unordered_set>

#include "op/effects.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "plan/kernel_code.h"

namespace treadle::plan {

namespace {

// Operations of a group. 48 operations on 100,000 floats take 178, 146, 130 and 122 microseconds in groups of 6, 12, 24
// and 48 (measured).
constexpr size_t kMaxMembers = 24;
// For fewer elements, chains and registers are better (kernels/chain.h). 160 floats are the ten vectors of AVX-512 that
// jit/chunks.h calls short. In the interpreter a sum of squared differences gains from 128 elements on (measured).
constexpr int64_t kFewElements = 160;
// Kernels share more elements among threads, if a run has several: five fused operations on as many take kMinTeamNs.
constexpr int64_t kMostOnOneThread = 8192;

bool is_held(const ir::Value* v) {
  return v && v->type.is_concrete() && is_native(v->type.element) &&
         v->type.shape.size() <= kernels::FusedPlan::kMaxDims;
}

int64_t count_of(const ir::Value& v) {
  return known_element_count(v.type.shape);
}

}  // namespace

// The waiting nodes of one region.
class Pending {
 public:
  explicit Pending(Fusion& fusion) : fusion_(fusion) {}

  void visit(const ir::Node& node) {
    if (waits(node)) {
      for (const ir::Value* v : node.inputs) prepare_operand(v);
      join(node);
      return;
    }
    if (fusion_.is_view(node)) {
      views_.insert(node.outputs[0]);
      return;
    }
    if (reduces_waiting(node)) {
      groups_[group_of_.at(node.inputs[0]->producer)].push_back(seen_.size());
      group_of_[&node] = group_of_.at(node.inputs[0]->producer);
      seen_.push_back(&node);
      return;
    }
    Unit unit{{&node}, false, {}, {}};
    for (const ir::Value* v : node.inputs) {
      if (!node.op->appends || !views_.contains(v)) {
        need(v);
        continue;
      }
      need_source(v);
      unit.views.push_back(v);
    }
    for (const auto& body : node.regions) {
      for (const ir::Value* v : ir::captures(*body)) need(v);
    }
    units_.push_back(std::move(unit));
  }

  std::vector<Unit> finish(const ir::Region& region) {
    for (size_t i = 0; i < seen_.size(); ++i) need(seen_[i]->outputs[0]);
    for (const ir::Value* v : region.outputs) need(v);
    return std::move(units_);
  }

 private:
  bool is_waiting(const ir::Value* v) const { return v && v->producer && group_of_.contains(v->producer); }

  bool waits(const ir::Node& node) {
    if (is_alias(node)) {
      return node.outputs[0] && is_held(node.outputs[0]) && is_waiting(aliased(node)) && !is_reduced(aliased(node)) &&
             std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                         [](const ir::Value* v) { return !v || v->is_constant(); });
    }
    return fusion_.is_elementwise(node);
  }

  bool is_reduced(const ir::Value* v) const { return v->producer && fusion_.reductions_.contains(v->producer); }

  bool reduces_waiting(const ir::Node& node) {
    return !node.inputs.empty() && is_waiting(node.inputs[0]) && !is_reduced(node.inputs[0]) &&
           fusion_.is_reduction(node);
  }

  void need(const ir::Value* v) {
    if (is_waiting(v)) return run_group(*v->producer);
    if (v && views_.erase(v) > 0) {
      need(v->producer->inputs[0]);
      units_.push_back({{v->producer}, false, {}, {}});
    }
  }

  // Makes sure that an operand of a node that starts to wait is computed, or waits in the same group.
  void prepare_operand(const ir::Value* v) {
    if (!v) return;
    if (views_.contains(v)) {
      need(v->producer->inputs[0]);
    } else if (is_waiting(v) && is_reduced(v)) {
      need(v);
    }
  }

  // Makes sure that an operand of a running group's member is computed.
  void need_source(const ir::Value* v) {
    if (v && views_.contains(v)) {
      need(v->producer->inputs[0]);
    } else {
      need(v);
    }
  }

  void run_group(const ir::Node& wanted) {
    const size_t index = group_of_.at(&wanted);
    std::vector<size_t> places = std::move(groups_[index]);
    std::sort(places.begin(), places.end());  // the model's order
    std::vector<const ir::Node*> group;
    for (const size_t place : places) group.push_back(seen_[place]);
    for (const ir::Node* node : group) group_of_.erase(node);
    for (const ir::Node* node : group) {
      for (const ir::Value* v : node->inputs) need_source(v);  // operands with other numbers of elements
    }
    emit(group);
  }

  // Joins a node that starts to wait with the waiting nodes of the same number of elements whose values it reads.
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

  // Moves the smaller group, so a node moves at most log2 of the group's size times.
  size_t merge(size_t a, size_t b) {
    if (a == b) return a;
    if (groups_[a].size() < groups_[b].size()) std::swap(a, b);
    for (const size_t place : groups_[b]) group_of_[seen_[place]] = a;
    groups_[a].insert(groups_[a].end(), groups_[b].begin(), groups_[b].end());
    groups_[b] = {};
    return a;
  }

  // Emits the group as one unit, or as several if it is too large for one kernel. An alias stays in the unit of its
  // operand, or is a unit by itself if that unit was emitted before.
  void emit(const std::vector<const ir::Node*>& group) {
    std::vector<const ir::Node*> reductions, members;
    for (const ir::Node* node : group) (fusion_.reductions_.contains(node) ? reductions : members).push_back(node);
    size_t at = 0;
    while (at < members.size()) {
      Unit unit;
      size_t operations = 0;
      std::unordered_set<const ir::Value*> made;
      for (; at < members.size() && (operations < kMaxMembers || is_alias(*members[at])); ++at) {
        const ir::Node* node = members[at];
        if (is_alias(*node) && !made.contains(aliased(*node))) {
          units_.push_back({{node}, false, {}, {}});
          continue;
        }
        made.insert(node->outputs[0]);
        unit.nodes.push_back(node);
        if (!is_alias(*node)) ++operations;
        for (const ir::Value* v : node->inputs) {
          if (views_.contains(v)) unit.views.push_back(v);
        }
      }
      if (unit.nodes.empty()) continue;
      take_reductions(unit, made, reductions);
      unit.fused = operations > 1 || !unit.views.empty() || !unit.reductions.empty();
      units_.push_back(std::move(unit));
    }
    for (const ir::Node* node : reductions) units_.push_back({{node}, false, {}, {}});
  }

  // Adds to the unit the reductions of its results that go along the same lines.
  void take_reductions(Unit& unit, const std::unordered_set<const ir::Value*>& made,
                       std::vector<const ir::Node*>& reductions) {
    std::erase_if(reductions, [&](const ir::Node* node) {
      if (!made.contains(node->inputs[0])) return false;
      const Lines& lines = fusion_.lines_.at(node);
      const bool alike =
          unit.reductions.empty() ? fusion_.is_even(unit, lines) : lines == fusion_.lines_.at(unit.reductions[0]);
      if (alike) unit.reductions.push_back(node);
      return alike;
    });
  }

  Fusion& fusion_;
  std::vector<const ir::Node*> seen_;                     // all nodes that have waited, in the model's order
  std::unordered_map<const ir::Node*, size_t> group_of_;  // of the nodes that still wait
  std::vector<std::vector<size_t>> groups_;               // connected nodes, by their index in seen_, in any order
  std::unordered_set<const ir::Value*> views_;            // views whose own result no node has needed yet
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

std::vector<const ir::Node*> Unit::all() const {
  std::vector<const ir::Node*> all = nodes;
  all.insert(all.end(), reductions.begin(), reductions.end());
  return all;
}

Fusion::Fusion(const ir::Graph& graph, const Options& options) : options_(options) {
  auto count = [&](const ir::Value* v) {
    if (v) ++*uses_.emplace(v).first;
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
  if (!options_.enabled) return false;
  if (!op.elementwise || !op.prepare || op.effects == Effects::kRandom || is_alias(node)) {
    return false;
  }
  if (node.inputs.empty() || node.outputs.size() != 1 || !is_held(node.outputs[0])) return false;
  if (!std::all_of(node.inputs.begin(), node.inputs.end(), is_held)) return false;
  if (can_fail(node) || count_of(*node.outputs[0]) < 1) return false;
  const ElementwiseForm form = elementwise_form(node);
  if (form.kind == ElementwiseForm::Kind::kNone || form.op == kernels::ElementwiseOp::kClip) return false;
  if (form.kind == ElementwiseForm::Kind::kConversion && form.converter.step_count == 0) return false;
  forms_.push_back(form);
  form_.emplace(&node, &forms_.back());
  return true;
}

std::vector<Unit> Fusion::units(const ir::Region& region) {
  Pending pending(*this);
  for (const auto& node : region.nodes) pending.visit(*node);
  return pending.finish(region);
}

bool Fusion::is_view(const ir::Node& node) {
  constexpr int64_t kFarthest = 4;  // elements from one to the next; reading elements that are farther apart is slower
  if (!options_.enabled || !node.op->moves_elements || !node.op->prepare || is_alias(node)) return false;
  if (node.inputs.empty() || node.outputs.size() != 1 || !is_held(node.outputs[0]) || !is_held(node.inputs[0])) {
    return false;
  }
  const bool is_known = std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                                    [](const ir::Value* v) { return !v || v->is_constant(); });
  if (!is_known || can_fail(node) || count_of(*node.outputs[0]) <= kFewElements) return false;
  std::optional<ElementwiseForm::View> view;
  with_form(node, [&](const ElementwiseForm& form) { view = form.view; });
  if (!view) return false;
  const Dims dims = known_dims(node.outputs[0]->type.shape);
  for (size_t d = dims.size(); d-- > 0;) {
    if (dims[d] == 1) continue;
    if (std::abs(view->strides[d]) > kFarthest) return false;
    break;
  }
  views_.emplace(node.outputs[0], *view);
  return true;
}

namespace {

std::optional<Lines> lines_of(const kernels::ReducePlan& plan, ElementType type) {
  using kernels::ReduceOp;
  const bool has_loop = plan.op == ReduceOp::kSum || plan.op == ReduceOp::kMean || plan.op == ReduceOp::kMax ||
                        plan.op == ReduceOp::kMin || plan.op == ReduceOp::kL1 || plan.op == ReduceOp::kSumSquare ||
                        (plan.op == ReduceOp::kL2 && is_float(type));
  if (!has_loop || type == ElementType::kBool || plan.load.step_count > 0 || plan.kept_rank > 1) return std::nullopt;
  Lines lines{plan.kept_rank == 1 ? plan.kept_dims[0] : 1, static_cast<int64_t>(plan.inner), 1};
  if (plan.columns) {
    if (plan.reduced_rank != 1) return std::nullopt;
    lines.inner = std::exchange(lines.n, plan.reduced_dims[0]);
  } else if (plan.reduced_rank > 0) {
    return std::nullopt;
  }
  return lines.n > 1 ? std::optional(lines) : std::nullopt;
}

}  // namespace

bool Fusion::is_reduction(const ir::Node& node) {
  if (!options_.enabled || !options_.reduces || !node.op->prepare || node.outputs.size() != 1 ||
      !is_held(node.outputs[0]))
    return false;
  const int64_t count = count_of(*node.inputs[0]);
  const bool is_known = std::all_of(node.inputs.begin() + 1, node.inputs.end(),
                                    [](const ir::Value* v) { return !v || v->is_constant(); });
  if (!is_known || can_fail(node) || count <= kFewElements) return false;
  std::optional<kernels::ReducePlan> plan;
  with_form(node, [&](const ElementwiseForm& form) {
    if (form.kind == ElementwiseForm::Kind::kReduction) plan = *form.reduction;
  });
  if (!plan) return false;
  const auto lines = lines_of(*plan, node.inputs[0]->type.element);
  if (!lines || (lines->outer == 1 && options_.threads > 1 && count > kMostOnOneThread)) return false;
  reductions_.emplace(&node, *plan);
  lines_.emplace(&node, *lines);
  return true;
}

}  // namespace treadle::plan
