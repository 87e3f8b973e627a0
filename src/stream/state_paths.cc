#include "stream/state_paths.h"

#include <algorithm>
#include <set>
#include <unordered_set>

#include "infer/inference.h"
#include "op/loop_view.h"
#include "stream/axis_walk.h"

namespace treadle::stream {

namespace {

// Whether one formal of an operator takes old values and the other returns them with new ones: "past_key" and
// "present_key".
bool are_past_and_present(const Formal* in, const Formal* out) {
  constexpr std::string_view kPast = "past", kPresent = "present";
  return in && out && in->name.starts_with(kPast) && out->name.starts_with(kPresent) &&
         in->name.substr(kPast.size()) == out->name.substr(kPresent.size());
}

}  // namespace

StatePaths::StatePaths(const ir::Graph& graph) : graph_(graph) {
  for (size_t i = 0; i < graph.top().inputs.size(); ++i) sources_[graph.top().inputs[i]][i] = {};
  walk(graph.top());
}

bool StatePaths::becomes(size_t input, size_t output) const {
  const auto sources = sources_.find(graph_.top().outputs[output]);
  if (sources == sources_.end()) return false;
  const auto it = sources->second.find(input);
  return it != sources->second.end() && it->second.changed && !it->second.behind;
}

void StatePaths::walk(const ir::Region& region) {
  for (const auto& node : region.nodes) visit(*node);
}

void StatePaths::add(const ir::Value* to, const ir::Value* from, bool changed) {
  const auto it = from ? sources_.find(from) : sources_.end();
  if (!to || it == sources_.end()) return;
  const Sources sources = it->second;
  for (const auto& [input, before] : sources) {
    Source& source = sources_[to][input];
    source.changed |= before.changed || changed;
    source.behind |= before.behind;
  }
}

bool StatePaths::holds(const ir::Value* v, size_t input) const {
  const auto it = sources_.find(v);
  return it != sources_.end() && it->second.contains(input);
}

// Joins parts: elements of each input get neighbours, unless all parts hold the same input.
void StatePaths::join(const ir::Node& node, std::span<ir::Value* const> parts, bool in_order) {
  for (const ir::Value* part : parts) add(node.outputs[0], part, false);
  const auto made = sources_.find(node.outputs[0]);
  if (made == sources_.end()) return;
  for (auto& [input, source] : made->second) {
    const auto of_this = [this, held = input](const ir::Value* part) { return holds(part, held); };
    source.changed |= !std::all_of(parts.begin(), parts.end(), of_this);
    const auto first = std::find_if(parts.begin(), parts.end(), of_this);
    source.behind |=
        in_order && std::any_of(parts.begin(), first, [&](const ir::Value* part) { return sources_.contains(part); });
  }
}

void StatePaths::visit(const ir::Node& node) {
  const auto input = [&](size_t i) { return i < node.inputs.size() ? node.inputs[i] : nullptr; };
  const auto output = [&](size_t i) { return i < node.outputs.size() ? node.outputs[i] : nullptr; };
  if (!node.regions.empty()) return visit_bodies(node);
  const std::span<ir::Value* const> operands(node.inputs.data(), node.inputs.size());
  if (node.op->over_time == TimeRule::kConcat) return join(node, operands, true);
  if (node.op->name == "Where") return join(node, operands.subspan(1), false);
  if (node.op->updates) return add(output(0), input(0), true);
  if (node.op->over_time == TimeRule::kRecurrence) {
    add(output(1), input(5), true);
    return add(output(2), input(6), true);
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!hands_on(node, i)) continue;
    for (const ir::Value* v : node.outputs) add(v, node.inputs[i], false);
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    for (size_t o = 0; o < node.outputs.size(); ++o) {
      if (are_past_and_present(node.version->input(i), node.version->output(o))) add(output(o), input(i), true);
    }
  }
}

void StatePaths::visit_bodies(const ir::Node& node) {
  for (const auto& body : node.regions) walk(*body);
  if (node.op->control == Control::kIf) {
    for (const auto& branch : node.regions) {
      for (size_t i = 0; i < std::min(node.outputs.size(), branch->outputs.size()); ++i) {
        add(node.outputs[i], branch->outputs[i], false);
      }
    }
    return;
  }
  if (!is_loop(node)) return;
  const LoopView loop(node);
  for (size_t i = 0; i < loop.states(); ++i) add(loop.state(i).final, loop.state(i).initial, true);
}

// ---------------------------------------------------------------------------------------------------------------------

namespace {

// Follows an axis of an input, and the values appended along it. Inference gives the same by sizes, except for results
// whose sizes depend on data.
class GrowthWalk : public AxisWalk {
 public:
  GrowthWalk(const ir::Graph& graph, const ir::Value* input, int64_t axis) : AxisWalk(input, axis) {
    walk(graph.top());
  }
  bool grows(const ir::Value* v, int64_t axis) const { return axis_of(v) == axis && grown_.contains(v); }

 private:
  void pass(const ir::Node& node) override {
    bool grown = false;
    for (const ir::Value* v : node.inputs) grown |= v && grown_.contains(v);
    if (node.op->over_time == TimeRule::kConcat) {
      const ir::Value* in =
          *std::find_if(node.inputs.begin(), node.inputs.end(), [&](const ir::Value* v) { return runs_along(v); });
      give(node.outputs[0], axis_of(in));
      grown |= from_front(node.attributes.get_int("axis"), in->type.rank()) == axis_of(in);
    } else {
      carry(node);
    }
    for (const ir::Value* v : node.outputs) {
      if (grown && runs_along(v)) grown_.insert(v);
    }
  }
  void pass_to(const ir::Value* to, const ir::Value* from) override {
    AxisWalk::pass_to(to, from);
    if (grown_.contains(from)) grown_.insert(to);
  }

  std::unordered_set<const ir::Value*> grown_;
};

class FirstSizesFinder {
 public:
  FirstSizesFinder(const ir::Graph& graph, const std::vector<StatePair>& states) : graph_(graph.clone()) {
    const auto& inputs = graph_->top().inputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const bool is_state = std::any_of(states.begin(), states.end(), [&](const StatePair& s) { return s.input == i; });
      for (size_t d = 0; d < inputs[i]->type.shape.size(); ++d) {
        Dim& size = inputs[i]->type.shape[d];
        if (size.is_unknown()) size = Dim::symbol(inputs[i]->name + "." + std::to_string(d));
        if (!is_state && !size.symbol_name().empty()) of_inputs_.emplace(size.symbol_name());
      }
    }
    Inference inference({.fold = false, .keep_declared = false, .strict = false});
    (void)inference.infer(graph_->top());  // values that it cannot infer stay unknown
  }

  FirstSizes find(const StatePair& state) const {
    const ir::Value *before = graph_->top().inputs[state.input], *after = graph_->top().outputs[state.output];
    FirstSizes found;
    for (size_t i = 0; i < before->type.shape.size(); ++i) {
      const bool known = after && after->type.shape.size() == before->type.shape.size();
      const auto [size, why] = find(before, after, i, known ? after->type.shape[i] : Dim());
      found.shape.push_back(size);
      found.why.push_back(why);
    }
    return found;
  }

 private:
  std::pair<Dim, FirstSize> find(const ir::Value* before, const ir::Value* after, size_t axis, const Dim& next) const {
    const Dim& size = before->type.shape[axis];
    if (size.is_known()) return {size, FirstSize::kStated};
    if (next.is_known()) return {next, FirstSize::kGiven};
    const bool grows =
        next.is_unknown()
            ? GrowthWalk(*graph_, before, static_cast<int64_t>(axis)).grows(after, static_cast<int64_t>(axis))
            : !same(next, size) && depends_on(next, size.symbol_name());
    if (grows) return {0, FirstSize::kGrows};
    const Dim& named = next.symbol_name().empty() ? size : next;
    if (of_inputs_.contains(std::string(named.symbol_name()))) return {named, FirstSize::kOfInputs};
    return {1, same(next, size) ? FirstSize::kKept : FirstSize::kUnknown};
  }

  std::unique_ptr<ir::Graph> graph_;
  std::set<std::string> of_inputs_;  // names of sizes of inputs that are not states
};

}  // namespace

std::vector<FirstSizes> first_sizes(const ir::Graph& graph, const std::vector<StatePair>& states) {
  std::vector<FirstSizes> found;
  const auto is_open = [&](const StatePair& s) { return !is_known(graph.top().inputs[s.input]->type.shape); };
  if (std::none_of(states.begin(), states.end(), is_open)) {
    for (const StatePair& s : states) {
      const Shape& shape = graph.top().inputs[s.input]->type.shape;
      found.push_back({shape, std::vector<FirstSize>(shape.size(), FirstSize::kStated)});
    }
    return found;
  }
  const FirstSizesFinder finder(graph, states);
  for (const StatePair& s : states) found.push_back(finder.find(s));
  return found;
}

}  // namespace treadle::stream
