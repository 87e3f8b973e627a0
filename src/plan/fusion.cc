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

constexpr size_t kMaxMembers = 24;
// For fewer elements, chains and registers are better (kernels/chain.h, jit/chunks.h).
constexpr int64_t kFewElements = 160;
// Kernels share more elements among threads, if a run has several.
constexpr int64_t kMostOnOneThread = 8192;

bool is_held(const ir::Value* v) {
  return v && v->type.is_concrete() && is_native(v->type.element) &&
         v->type.shape.size() <= kernels::FusedPlan::kMaxDims;
}

int64_t count_of(const ir::Value& v) {
  return known_element_count(v.type.shape);
}

bool is_alias(const ir::Node& node) {
  return node.op->alias_input >= 0;
}

const ir::Value* aliased(const ir::Node& node) {
  return node.inputs[static_cast<size_t>(node.op->alias_input)];
}

}  // namespace

// The waiting nodes of one region.
class Pending {
 public:
  explicit Pending(Fusion& fusion) : fusion_(fusion) {}

  void visit(const ir::Node& node) {
    if (waits(node)) {
      for (const ir::Value* v : node.inputs) settle(v);
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
  void settle(const ir::Value* v) {
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

Fusion::Fusion(const ir::Graph& graph, bool enabled, int threads) : enabled_(enabled), threads_(threads) {
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
  if (!enabled_) return false;
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
  if (!enabled_ || !node.op->moves_elements || !node.op->prepare || is_alias(node)) return false;
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
  if (!enabled_ || !node.op->prepare || node.outputs.size() != 1 || !is_held(node.outputs[0])) return false;
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
  if (!lines || (lines->outer == 1 && threads_ > 1 && count > kMostOnOneThread)) return false;
  reductions_.emplace(&node, *plan);
  lines_.emplace(&node, *lines);
  return true;
}

Fusion::Source Fusion::source(const Unit& unit, const ir::Value* v) const {
  Source source{v, 0, operand_of(*v)};
  if (std::find(unit.views.begin(), unit.views.end(), v) == unit.views.end()) return source;
  const ElementwiseForm::View& view = views_.at(v);
  source.value = v->producer->inputs[0];
  source.start = view.start;
  source.operand.strides = view.strides;
  source.operand.start = view.start;
  source.operand.is_part = true;
  return source;
}

namespace {

// Whether `strides` over `dims` are one axis's, for dims that step through positions [first, last).
bool is_one_axis(const Dims& dims, const Dims& strides, int64_t first, int64_t last) {
  int64_t inside = 1, stride = 0;
  bool begun = false;
  for (size_t d = dims.size(); d-- > 0; inside *= dims[d]) {
    const int64_t end = inside * dims[d], from = std::max(inside, first);
    if (end <= from || inside >= last) continue;
    const int64_t here = strides[d] * (from / inside);
    if (!begun) stride = here;
    if (here * first != stride * from) return false;
    begun = true;
  }
  return true;
}

}  // namespace

bool Fusion::is_even(const Unit& unit, const Lines& lines) const {
  const int64_t line = lines.n * lines.inner;
  std::unordered_set<const ir::Value*> made;
  for (const ir::Node* node : unit.nodes) {
    made.insert(node->outputs[0]);
    if (is_alias(*node)) continue;
    const ElementwiseForm& form = this->form(*node);
    const Dims dims = known_dims(node->outputs[0]->type.shape);
    const size_t count = form.kind == ElementwiseForm::Kind::kConversion ? 1 : kernels::info(form.op).inputs;
    for (size_t i = 0; i < count; ++i) {
      const ir::Value* v = node->inputs[count == 1 ? 0 : form.arguments[i]];
      if (made.contains(v)) continue;
      const Dims strides = broadcast_strides(source(unit, v).operand, dims, i == 1 ? form.axis : -1);
      if (!is_one_axis(dims, strides, 1, lines.inner) || !is_one_axis(dims, strides, lines.inner, line)) return false;
    }
  }
  return true;
}

namespace {

using kernels::ElementwiseOp;
using kernels::TileConverter;

// Whether the result of an operation on narrow elements in wide_type() is always a narrow element.
bool stays_narrow(ElementwiseOp op) {
  return op == ElementwiseOp::kMin || op == ElementwiseOp::kMax || op == ElementwiseOp::kBitwiseAnd ||
         op == ElementwiseOp::kBitwiseOr || op == ElementwiseOp::kBitwiseXor;
}

TileConverter one_step(const TileConverter& converter, size_t at) {
  TileConverter step;
  step.steps[0] = converter.steps[at];
  step.step_count = 1;
  return step;
}

}  // namespace

// The values of a group while its plan is built. Narrow elements are widened before operations and narrowed after them,
// each once, and only if a node needs that form.
struct Fusion::Members {
  using Made = kernels::FusedBuilder::Value;
  // At least one is set. Both are the same for elements that are stored in their compute type.
  struct Forms {
    std::optional<Made> stored, wide;
  };
  struct Input {
    const ir::Value* value;
    int64_t start;
    Dims strides;
    Forms forms;
  };

  const Fusion& fusion;
  const Unit& unit;
  FusedGroup& group;
  std::vector<Input> inputs;
  std::unordered_map<const ir::Value*, Forms> made;
  std::unordered_map<const ir::Value*, const ir::Value*> base;  // the value whose memory an alias shares
  std::unordered_map<const ir::Value*, size_t> used;            // uses inside of the group

  Made stored(Forms& forms, ElementType type) {
    if (!forms.stored) {
      forms.stored = group.builder.convert(kernels::make_converter(wide_type(type), type), *forms.wide, type);
    }
    return *forms.stored;
  }
  Made wide(Forms& forms, ElementType type) {
    const ElementType to = wide_type(type);
    if (!forms.wide) {
      forms.wide =
          to == type ? *forms.stored : group.builder.convert(kernels::make_converter(type, to), *forms.stored, to);
    }
    return *forms.wide;
  }

  const ir::Value* resolve(const ir::Value* v) const {
    const auto it = base.find(v);
    return it == base.end() ? v : it->second;
  }

  // `v` as an argument of an operation with a result of `dims`.
  Forms& argument(const ir::Value* v, const Dims& dims, int64_t axis) {
    if (const auto it = made.find(resolve(v)); it != made.end()) return it->second;
    const Fusion::Source from = fusion.source(unit, v);
    Dims strides = broadcast_strides(from.operand, dims, axis);
    for (Input& input : inputs) {
      if (input.value == from.value && input.start == from.start && input.strides == strides) return input.forms;
    }
    const Made read = group.builder.input(v->type.element, dims, strides, from.start);
    inputs.push_back({from.value, from.start, std::move(strides), {read, std::nullopt}});
    group.inputs.push_back(from.value);
    return inputs.back().forms;
  }

  // Storage -> its compute type -> the target's compute type -> target's storage.
  void convert(const ir::Node& node, const TileConverter& converter) {
    const ir::Value *from = node.inputs[0], *to = node.outputs[0];
    const ElementType source = from->type.element, target = to->type.element;
    Forms& x = argument(from, known_dims(to->type.shape), -1);
    if (converter.step_count == 1 && wide_type(target) == target) {
      made[to].stored = group.builder.convert(converter, stored(x, source), target);
      return;
    }
    Made value = wide(x, source);
    size_t at = wide_type(source) == source ? 0 : 1;
    if (wide_type(source) != wide_type(target)) {
      value = group.builder.convert(one_step(converter, at++), value, wide_type(target));
    }
    if (wide_type(target) != target) value = group.builder.convert(one_step(converter, at), value, target);
    made[to].stored = value;
  }

  void apply(const ir::Node& node, const ElementwiseForm& form) {
    const ir::Value* result = node.outputs[0];
    const Dims dims = known_dims(result->type.shape);
    const bool chooses = form.op == ElementwiseOp::kWhere;
    Made arguments[3];
    const size_t count = kernels::info(form.op).inputs;
    for (size_t i = 0; i < count; ++i) {
      const ir::Value* v = node.inputs[form.arguments[i]];
      Forms& forms = argument(v, dims, i == 1 ? form.axis : -1);
      arguments[i] = chooses ? stored(forms, v->type.element) : wide(forms, v->type.element);
    }
    const Made value = group.builder.apply(form.op, std::span(arguments, count), form.params);
    Forms& forms = made[result];
    const ElementType type = result->type.element;
    if (chooses || wide_type(type) == type) {
      forms.stored = value;
      return;
    }
    forms.wide = value;
    if (stays_narrow(form.op)) return;
    stored(forms, type);
    forms.wide.reset();
  }
};

// The operands of reductions follow the wanted outputs, unless an operand is one of these.
void Fusion::add_reductions(const Unit& unit, Members& members) const {
  FusedGroup& group = members.group;
  std::vector<const ir::Value*> reduced = group.outputs;
  for (const ir::Node* node : unit.reductions) {
    const ir::Value* base = members.resolve(node->inputs[0]);
    auto at = std::find(reduced.begin(), reduced.end(), base);
    if (at == reduced.end()) {
      group.builder.output(members.stored(members.made.at(base), base->type.element));
      group.hidden.push_back(base->type.element);
      at = reduced.insert(reduced.end(), base);
    }
    const Lines& lines = lines_.at(node);
    group.line = static_cast<size_t>(lines.outer == 1 ? count_of(*base) : lines.n * lines.inner);
    group.builder.set_line(group.line);
    group.reductions.push_back({node, static_cast<size_t>(at - reduced.begin()), reductions_.at(node)});
  }
}

FusedGroup Fusion::build(const Unit& unit) const {
  FusedGroup group(static_cast<size_t>(count_of(*unit.nodes[0]->outputs[0])));
  Members members{*this, unit, group, {}, {}, {}, {}};
  for (const ir::Node* node : unit.nodes) {
    const ir::Value* result = node->outputs[0];
    for (const ir::Value* v : node->inputs) ++members.used[v];
    if (is_alias(*node)) {
      members.base[result] = members.resolve(aliased(*node));
      continue;
    }
    const ElementwiseForm& form = this->form(*node);
    if (form.kind == ElementwiseForm::Kind::kConversion) {
      members.convert(*node, form.converter);
    } else {
      members.apply(*node, form);
    }
  }
  for (const ir::Node* node : unit.reductions) ++members.used[node->inputs[0]];
  std::unordered_set<const ir::Value*> wanted;
  for (const ir::Node* node : unit.nodes) {
    const ir::Value* result = node->outputs[0];
    const size_t* uses = uses_.find(result);
    if (!uses || *uses == members.used[result]) continue;
    const ir::Value* base = members.resolve(result);
    if (wanted.insert(base).second) {
      group.builder.output(members.stored(members.made.at(base), base->type.element));
      group.outputs.push_back(base);
    }
    if (base != result) group.aliases.emplace_back(result, base);
  }
  add_reductions(unit, members);
  return group;
}

}  // namespace treadle::plan
