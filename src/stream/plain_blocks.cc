#include "stream/plain_blocks.h"

#include <algorithm>

#include "session/plain_program.h"
#include "stream/layout.h"

namespace treadle {

namespace {

using Role = StreamLayout::Role;
using Types = std::vector<std::pair<std::string, Type>>;

class PlainBlocks {
 public:
  PlainBlocks(const StreamLayout& layout, const PlainPushes& pushes)
      : layout_(layout), over_time_(layout.over_time.get()), pushes_(pushes), sizes_(pushes.sizes) {}

  Result<plan::StreamPrograms> make() {
    TREADLE_TRY(count_samples());
    TREADLE_TRY(find_types());
    for (const auto& [name, value] : layout_.bound) fixed_.push_back({name, &value});
    for (const StreamLayout::Timed& timed : layout_.timed) made_.timed.push_back({timed.input->name, timed.axis});
    for (size_t i = 0; i < layout_.outputs.size(); ++i) {
      made_.outputs.push_back({layout_.output_names[i], layout_.outputs[i].time_axis});
    }
    if (!over_time_) {
      TREADLE_ASSIGN(made_.steady, run(*layout_.session, made_.samples, true));
    } else {
      TREADLE_TRY(make_over_time());
    }
    TREADLE_TRY(same_states(made_.steady));
    return std::move(made_);
  }

 private:
  Status count_samples() {
    const int64_t hop = over_time_ ? over_time_->hop : layout_.hop;
    int64_t samples = pushes_.samples > 0 ? pushes_.samples : hop;
    if (layout_.timed.empty()) {
      if (pushes_.samples > 0) {
        return error(Code::kInvalidArgument, "samples={}: no input of the stream is cut along time", pushes_.samples);
      }
      return {};
    }
    if (samples == 0) return error(Code::kInvalidArgument, "say how many samples a push has: samples=N");
    if (over_time_ && samples % hop != 0) {
      return error(Code::kInvalidArgument, "samples={}: expected a multiple of {}, so that each push gives frames",
                   samples, hop);
    }
    if (!over_time_ && hop > 0 && samples != hop) {
      return error(Code::kInvalidArgument, "samples={}: expected the hop, {}", samples, hop);
    }
    made_.samples = samples;
    made_.context = layout_.context;
    if (over_time_) {
      made_.waiting_pushes = (over_time_->first + samples - 1) / samples - 1;
      made_.waiting = (samples * (made_.waiting_pushes + 1) - over_time_->first) % hop;
    }
    return {};
  }

  // The types of all inputs that a run gets, for the samples of a push.
  Status find_types() {
    for (const StreamLayout::Timed& timed : layout_.timed) {
      Type type = timed.input->type;
      if (type.has_shape) type.shape[static_cast<size_t>(timed.axis)] = made_.context + made_.samples;
      TREADLE_TRY(sizes_.close(timed.input->name, type));
      learn(timed.input->type, type, timed.axis);
      types_.emplace_back(timed.input->name, std::move(type));
    }
    for (const IoInfo* given : layout_.given) {
      if (given->has_default) continue;
      Type type = given->type;
      TREADLE_TRY(sizes_.close(given->name, type));
      learn(given->type, type, -1);
      types_.emplace_back(given->name, std::move(type));
    }
    for (const StreamLayout::State& state : layout_.states) {
      plan::StreamPrograms::State made{state.input->name, state.input->type, {}};
      if (state.has_initial || state.input->has_default) {
        if (!state.initial.is_tensor()) return not_a_tensor(state.input->name, state.initial.type());
        made.initial = state.initial.tensor();
        made.type = state.initial.type();
      } else {
        if (!made.type.is_tensor() || !made.type.has_shape) return not_a_tensor(state.input->name, made.type);
        Shape first = state.first.shape;
        first.resize(made.type.shape.size());
        for (size_t axis = 0; axis < first.size(); ++axis) {
          if (made.type.shape[axis].is_known()) first[axis] = made.type.shape[axis];
        }
        made.type.shape = std::move(first);
        sizes_.set(state.input->name, made.type);
        made.type.shape = to_shape(first_dims(made.type.shape, symbols_));
      }
      types_.emplace_back(made.name, made.type);
      made_.states.push_back(std::move(made));
    }
    return sizes_.all_used();
  }

  static Status not_a_tensor(const std::string& state, const Type& type) {
    return error(Code::kNotImplemented, "state '{}' is {}; C needs a tensor of numbers whose sizes are known", state,
                 type.to_string());
  }

  // The sizes that an input gives to names, as a push finds them.
  void learn(const Type& declared, const Type& type, int64_t without) {
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      const std::string_view symbol = declared.shape[axis].symbol_name();
      if (static_cast<int64_t>(axis) != without && !symbol.empty()) {
        symbols_.emplace_back(symbol, type.shape[axis].value());
      }
    }
  }

  // A run of `session` that takes so many samples.
  Result<plan::StreamPrograms::Run> run(const Session& session, int64_t samples, bool gives_states) {
    Types types = types_;
    for (size_t i = 0; i < layout_.timed.size(); ++i) {
      types[i].second.shape[static_cast<size_t>(layout_.timed[i].axis)] = made_.context + samples;
    }
    std::vector<Feed> fixed;
    for (const Feed& feed : fixed_) {
      const auto& inputs = session.graph().top().inputs;
      if (std::ranges::any_of(inputs, [&](const ir::Value* v) { return v->name == feed.name; })) fixed.push_back(feed);
    }
    session::PlainSizes known;
    known.fixed = fixed;
    known.types = types;
    known.isa = pushes_.isa;
    plan::StreamPrograms::Run made;
    TREADLE_ASSIGN(made.program, session.plain_program(known));
    made.samples = samples;
    const std::vector<size_t>& positions = over_time_ ? layout_.block_outputs : layout_.run_outputs;
    const auto states = static_cast<std::ptrdiff_t>(layout_.outputs.size());
    made.outputs.assign(positions.begin(), positions.begin() + states);
    if (gives_states) made.states.assign(positions.begin() + states, positions.end());
    return made;
  }

  Status make_over_time() {
    const int64_t hop = over_time_->hop, first = over_time_->first;
    const int64_t at_first = made_.samples * (made_.waiting_pushes + 1) - made_.waiting;
    TREADLE_ASSIGN(plan::StreamPrograms::Run start, run(*over_time_->start, at_first, true));
    for (size_t i = 0; i < over_time_->states.size(); ++i) {
      const size_t at = start.states[layout_.states.size() + i];
      const Type& type = start.program->outputs[at].type;
      if (!type.is_tensor() || !is_known(type.shape)) return not_a_tensor(over_time_->states[i], type);
      made_.states.push_back({over_time_->states[i], type, {}});
      types_.emplace_back(over_time_->states[i], type);
    }
    TREADLE_TRY(same_states(start));
    TREADLE_ASSIGN(made_.steady, run(*over_time_->steady, made_.samples, true));
    // Where zeros as states begin the signal, each push is like the others.
    const bool is_like_others =
        over_time_->begins_with_zeros && first == hop && at_first == made_.samples && made_.waiting == 0;
    if (!is_like_others) made_.first = std::move(start);
    if (!pushes_.ends) return {};
    TREADLE_ASSIGN(plan::StreamPrograms::Run rest, run(*over_time_->last, made_.waiting, false));
    if (!gives_frames(rest)) return {};
    made_.rest = std::move(rest);
    made_.has_end = true;
    return {};
  }

  // Results without frames are those of the samples so far, which the push before has given.
  bool gives_frames(const plan::StreamPrograms::Run& run) const {
    if (run.samples > 0) return true;
    for (size_t o = 0; o < made_.outputs.size(); ++o) {
      const Type& type = run.program->outputs[run.outputs[o]].type;
      const bool is_empty = type.is_tensor() && is_known(type.shape) && known_element_count(type.shape) == 0;
      if (made_.outputs[o].axis >= 0 && !is_empty) return true;
    }
    return false;
  }

  Status same_states(const plan::StreamPrograms::Run& run) const {
    for (size_t i = 0; i < run.states.size() && i < made_.states.size(); ++i) {
      const Type& next = run.program->outputs[run.states[i]].type;
      const plan::StreamPrograms::State& state = made_.states[i];
      if (next.is_concrete() && next.element == state.type.element &&
          known_dims(next.shape) == known_dims(state.type.shape)) {
        continue;
      }
      return error(Code::kNotImplemented, "state '{}' is {} and then {}: C needs one size", state.name,
                   state.type.to_string(), next.to_string());
    }
    return {};
  }

  const StreamLayout& layout_;
  const OverTime* over_time_;
  const PlainPushes& pushes_;
  session::GivenSizes sizes_;
  Symbols symbols_;
  Types types_;  // timed inputs first
  std::vector<Feed> fixed_;
  plan::StreamPrograms made_;
};

}  // namespace

Result<plan::StreamPrograms> plain_blocks(const StreamLayout& layout, const PlainPushes& pushes) {
  return PlainBlocks(layout, pushes).make();
}

}  // namespace treadle
