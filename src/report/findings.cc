#include "report/findings.h"

#include <algorithm>
#include <unordered_map>

#include "op/place.h"
#include "plan/planner.h"
#include "session/origins.h"

namespace treadle::report {

namespace {

std::vector<int64_t> index_of(int64_t element, const Dims& dims) {
  std::vector<int64_t> index(dims.size());
  for (size_t i = dims.size(); i-- > 0;) {
    index[i] = element % dims[i];
    element /= dims[i];
  }
  return index;
}

// The node of the model from which `node` was made: its path and its operator.
std::pair<std::string, std::string> named(const ir::Node& node) {
  const std::string place = node_place(node);  // "path (Operator-version)"
  const size_t open = place.rfind(" ("), dash = place.rfind('-');
  if (open == std::string::npos || dash == std::string::npos || dash < open) {
    return {std::string(node.name), node.op->name};
  }
  return {place.substr(0, open), place.substr(open + 2, dash - open - 2)};
}

class Namer {
 public:
  Namer(const Watcher& watcher, const ir::Graph& model, const Sought& sought)
      : watcher_(watcher), program_(watcher.program()), model_(model), sought_(sought) {
    for (const ir::Value* value : program_.graph->values()) {
      if (value->origin != 0 && value->is_constant()) known_[value->origin] = &value->constant;
    }
  }

  // `value`: null leaves it without a name.
  void set_name(FoundValue& found, const ir::Value* value) const {
    if (value && value->origin != 0) {
      found.name = session::path_of(session::value_of(model_, value->origin));
      found.label = std::string(session::value_of(model_, value->origin).name);
    } else if (value) {
      found.name = found.label = std::string(value->name);
    }
  }
  // A value of the model that lies in the slot; null: there is none.
  const ir::Value* value_in(uint32_t slot) const {
    for (const auto& [value, at] : program_.values) {
      if (at == slot) return value;
    }
    return nullptr;
  }
  std::string loop_name(uint32_t loop) const { return named(*program_.loops[loop].node).first; }

  FoundValue operand(const Making& making, size_t i) const {
    const Making::Operand& from = making.inputs[i];
    FoundValue value;
    value.statistics = from.seen.statistics;
    value.number = from.number;
    const ir::Node& node = *program_.node_of[making.pc];
    const ir::Value* const input =
        making.inputs.size() == node.inputs.size() && node.inputs[i] ? node.inputs[i] : nullptr;
    set_name(value, input ? input : value_in(from.slot));
    value.type = (input ? input->type : program_.slots[from.slot].type).to_string();
    if (from.seen.pc == UINT32_MAX || !program_.node_of[from.seen.pc]) return value;
    const auto [path, op] = named(*program_.node_of[from.seen.pc]);
    value.made_by = op + " " + path;
    for (const uint32_t loop : watcher_.loops_around(from.seen.pc)) value.loops.push_back(loop_name(loop));
    value.iteration = from.seen.iteration;
    return value;
  }

  FoundPlace place(const Making& making, int64_t times) const {
    FoundPlace found;
    found.by = static_cast<FoundPlace::By>(making.by);
    found.times = times;
    found.result.statistics = making.result;
    if (making.by == Making::By::kNode) {
      const ir::Node& node = *program_.node_of[making.pc];
      std::tie(found.node, found.op) = named(node);
      for (const auto& [loop, iteration] : making.iterations) found.iterations.emplace_back(loop_name(loop), iteration);
      for (size_t i = 0; i < making.inputs.size(); ++i) {
        if (making.inputs[i].slot != plan::kNoSlot) found.inputs.push_back(operand(making, i));
      }
      const ir::Value* const output = making.output < node.outputs.size() ? node.outputs[making.output] : nullptr;
      set_name(found.result, output ? output : value_in(making.slot));
    } else {
      const ir::Value* const value = value_in(making.slot);
      set_name(found.result, value);
      if (making.by == Making::By::kConstant) name_maker(value, found);
    }
    found.result.type = program_.slots[making.slot].type.to_string();
    found.has_element = making.element >= 0;
    if (found.has_element) found.element = index_of(making.element, making.dims);
    found.number = making.value;
    return found;
  }

  // Of a constant that nodes computed from constants before the run: the first of these nodes whose operands have
  // nothing of what is sought. `constant`: null for one that a lowering has made of the model's; then it is taken for
  // one that was made of the first that has what is sought.
  void name_maker(const ir::Value* constant, FoundPlace& found) const {
    const ir::Value* at = constant ? &session::value_of(model_, constant->origin) : first_sought();
    while (at && at->producer) {
      const ir::Node& node = *at->producer;
      std::tie(found.node, found.op) = named(node);
      found.inputs.clear();
      const ir::Value* before = nullptr;
      for (const ir::Value* input : node.inputs) {
        const Tensor* const known = input ? known_of(*input) : nullptr;
        if (!known || !kernels::has_statistics(known->type())) continue;
        FoundValue operand;
        operand.name = session::path_of(*input);
        operand.label = std::string(input->name);
        operand.type = input->type.to_string();
        operand.statistics = statistics_of(*known);
        if (!before && sought_.is_in(operand.statistics)) before = input;
        found.inputs.push_back(std::move(operand));
      }
      if (!before) return;
      at = before;
    }
    found.node.clear(), found.op.clear(), found.inputs.clear();
    if (at) found.result.name = found.result.label = std::string(at->name);
  }
  const ir::Value* first_sought() const {
    for (const ir::Value* value : model_.values()) {
      const Tensor* const known = known_of(*value);
      if (!known || !kernels::has_statistics(known->type())) continue;
      if (sought_.is_in(statistics_of(*known))) return value;
    }
    return nullptr;
  }
  const Tensor* known_of(const ir::Value& value) const {
    if (value.is_constant()) return &value.constant;
    const auto known = known_.find(value.origin);
    return known == known_.end() ? nullptr : known->second;
  }

  FoundStep step(const Step& from) const {
    FoundStep made;
    if (const ir::Node* const node = program_.node_of[from.pc]) std::tie(made.node, made.op) = named(*node);
    const int loop = watcher_.loop_around(from.pc);
    if (loop >= 0) made.loop = loop_name(static_cast<uint32_t>(loop));
    const plan::OpCode code = program_.code[from.pc].code;
    made.is_row = code == plan::OpCode::kLoopNext || code == plan::OpCode::kLoopNextSimple;
    made.first = from.first;
    made.last = from.last;
    made.times = from.times;
    return made;
  }

 private:
  const Watcher& watcher_;
  const plan::Program& program_;
  const ir::Graph& model_;
  const Sought& sought_;
  std::unordered_map<uint32_t, const Tensor*> known_;  // before the run, by the origins of values
};

}  // namespace

Findings findings_of(const Finder& finder, Watcher& watcher, const session::ModelValues& model,
                     std::span<const std::string> outputs) {
  Findings made;
  made.sought = finder.sought().text();
  made.is_complete = watcher.is_complete();
  const Namer namer(watcher, model.graph(), finder.sought());
  made.values = static_cast<int64_t>(watcher.program().values.size());
  made.instructions = watcher.instructions();
  const auto times_of = [&](const Making& making) {
    const uint32_t place = making.by == Making::By::kNode ? making.pc : making.slot;
    return std::pair(std::pair(making.by, place), finder.places().at({making.by, place}).times);
  };
  std::vector<std::pair<Making::By, uint32_t>> reached;
  std::vector<const Making*> makings;
  for (size_t i = 0; i < finder.outputs().size(); ++i) {
    const Finder::Output& from = finder.outputs()[i];
    FoundOutput& output = made.outputs.emplace_back();
    output.name = i < outputs.size() ? outputs[i] : "";
    output.statistics = from.statistics;
    output.has_element = from.element >= 0;
    if (output.has_element) output.element = index_of(from.element, from.dims);
    if (!from.cause) continue;
    for (const Step& step : from.cause->steps) output.path.push_back(namer.step(step));
    output.left_out = from.cause->left_out;
    const Making* const making = from.cause->making.get();
    const auto known = std::find(makings.begin(), makings.end(), making);
    output.place = static_cast<size_t>(known - makings.begin());
    if (known != makings.end()) continue;
    const auto [place, times] = times_of(*making);
    makings.push_back(making);
    made.places.push_back(namer.place(*making, times));
    reached.push_back(place);
  }
  made.reached = made.places.size();
  std::vector<const Finder::Place*> others;
  for (const auto& [place, found] : finder.places()) {
    if (std::find(reached.begin(), reached.end(), place) == reached.end()) others.push_back(&found);
  }
  std::sort(others.begin(), others.end(),
            [](const Finder::Place* a, const Finder::Place* b) { return a->first->number < b->first->number; });
  for (const Finder::Place* other : others) made.places.push_back(namer.place(*other->first, other->times));
  return made;
}

}  // namespace treadle::report
