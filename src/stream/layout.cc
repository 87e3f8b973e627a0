#include "stream/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "stream/block_edges.h"
#include "stream/state_pairs.h"

namespace treadle {

namespace {

std::string names_of(std::span<const IoInfo> infos) {
  std::string names;
  for (const IoInfo& info : infos) names += (names.empty() ? "" : ", ") + info.name;
  return names.empty() ? "none" : names;
}

size_t position(const Session& session, std::string_view input) {
  const auto& inputs = session.graph().top().inputs;
  const auto at = std::find_if(inputs.begin(), inputs.end(), [&](const ir::Value* v) { return v->name == input; });
  return static_cast<size_t>(at - inputs.begin());
}

// In the layout's session, where sizes have their own names.
void find_first_sizes(StreamLayout& layout) {
  std::vector<stream::StatePair> pairs;
  for (const StreamLayout::State& s : layout.states)
    pairs.push_back({position(*layout.session, s.input->name), s.output});
  if (pairs.empty()) return;
  std::vector<stream::FirstSizes> found = stream::first_sizes(layout.session->graph(), pairs);
  for (size_t i = 0; i < pairs.size(); ++i) layout.states[i].first = std::move(found[i]);
}

class LayoutBuilder {
 public:
  LayoutBuilder(std::shared_ptr<const Session> session, StreamOptions options)
      : options_(std::move(options)), layout_(std::make_shared<StreamLayout>()) {
    layout_->session = std::move(session);
    layout_->hop = options_.hop;
    layout_->context = options_.context;
  }

  Result<std::shared_ptr<const StreamLayout>> build() {
    if (options_.hop < 0 || options_.context < 0) {
      return error(Code::kInvalidArgument, "hop ({}) and context ({}) cannot be negative", options_.hop,
                   options_.context);
    }
    TREADLE_TRY(take_bound());
    TREADLE_TRY(take_time());
    TREADLE_TRY(take_states());
    if (options_.find_state) find_states();
    TREADLE_TRY(take_initial());
    find_first_sizes(*layout_);
    if (layout_->timed.empty() && (options_.hop > 0 || options_.context > 0)) TREADLE_TRY(find_time());
    for (const IoInfo& info : session().inputs()) {
      if (is_free(info)) layout_->given.push_back(&info);
    }
    TREADLE_TRY(sort_outputs());
    if (!layout_->timed.empty() && options_.hop == 0 && options_.context == 0) TREADLE_TRY(find_over_time());
    if (layout_->hop > 0 && layout_->context == 0) find_edges();
    layout_->block_outputs = layout_->run_outputs;
    if (layout_->over_time) {
      const size_t of_model = session().outputs().size();
      for (size_t i = 0; i < layout_->over_time->states.size(); ++i) layout_->block_outputs.push_back(of_model + i);
    }
    layout_->by_position = by_position();
    list_inputs();
    layout_->identity = StreamIdentity::of(*layout_);
    return std::shared_ptr<const StreamLayout>(std::move(layout_));
  }

 private:
  const Session& session() const { return *layout_->session; }

  Result<const IoInfo*> input(std::string_view name) const {
    for (const auto list : {session().inputs(), session().overridable()}) {
      for (const IoInfo& info : list) {
        if (info.name == name) return &info;
      }
    }
    return error(Code::kInvalidArgument, "the model has no input '{}' (inputs: {})", name,
                 names_of(session().inputs()));
  }

  std::optional<size_t> output(std::string_view name) const {
    const auto list = session().outputs();
    for (size_t i = 0; i < list.size(); ++i) {
      if (list[i].name == name) return i;
    }
    return std::nullopt;
  }

  // Whether the input has no role yet.
  bool is_free(const IoInfo& info) const { return std::find(taken_.begin(), taken_.end(), &info) == taken_.end(); }

  Status take(const IoInfo* info) {
    if (!is_free(*info)) return error(Code::kInvalidArgument, "input '{}' is given two roles", info->name);
    taken_.push_back(info);
    return {};
  }

  Status take_bound() {
    for (auto& [name, value] : options_.bind) {
      TREADLE_ASSIGN(const IoInfo* info, input(name));
      TREADLE_TRY(take(info));
      layout_->bound.emplace_back(name, std::move(value));
    }
    return {};
  }

  // The axis whose size has this name.
  static Result<int64_t> axis_named(const IoInfo& info, const std::string& symbol) {
    std::optional<int64_t> found;
    for (int64_t i = 0; i < info.type.rank(); ++i) {
      if (info.type.shape[static_cast<size_t>(i)].symbol_name() != symbol) continue;
      if (found) {
        return error(Code::kInvalidArgument,
                     "axes {} and {} of '{}' ({}) both have the size {}: give the time axis as a "
                     "number",
                     *found, i, info.name, info.type.to_string(), symbol);
      }
      found = i;
    }
    if (found) return *found;
    return error(Code::kInvalidArgument, "'{}' is {}: none of its axes has a size named {}", info.name,
                 info.type.to_string(), symbol);
  }

  static Result<int64_t> axis_of(const IoInfo& info, const StreamOptions::TimeAxis& wanted) {
    if (!info.type.is_tensor()) {
      return error(Code::kInvalidArgument, "'{}' is a {} and has no time axis", info.name, info.type.to_string());
    }
    if (!wanted.symbol.empty()) return axis_named(info, wanted.symbol);
    const int64_t axis = wanted.axis;
    if (!info.type.has_shape) {
      if (axis < 0)
        return error(Code::kInvalidArgument, "the rank of '{}' is not known: count its axis from 0", info.name);
      return axis;
    }
    return normalize_axis(axis, info.type.rank(),
                          fmt::format("the time axis of '{}' ({})", info.name, info.type.to_string()));
  }

  Status take_time() {
    for (const StreamOptions::TimeAxis& wanted : options_.time) {
      const std::string& name = wanted.name;
      if (const auto index = output(name)) {
        TREADLE_ASSIGN(const int64_t normal, axis_of(session().outputs()[*index], wanted));
        output_axes_.emplace_back(*index, normal);
        continue;
      }
      if (!input(name).ok()) {
        return error(Code::kInvalidArgument, "the model has no input or output '{}' (inputs: {}; outputs: {})", name,
                     names_of(session().inputs()), names_of(session().outputs()));
      }
      TREADLE_ASSIGN(const IoInfo* info, input(name));
      TREADLE_TRY(take(info));
      if (is_string(info->type.element)) {
        return error(Code::kInvalidArgument, "input '{}' holds strings, which are not cut along time", name);
      }
      TREADLE_ASSIGN(const int64_t normal, axis_of(*info, wanted));
      layout_->timed.push_back({info, normal});
    }
    return {};
  }

  Status take_states() {
    for (const auto& [in, out] : options_.state) {
      TREADLE_ASSIGN(const IoInfo* info, input(in));
      TREADLE_TRY(take(info));
      const auto index = output(out);
      if (!index) {
        return error(Code::kInvalidArgument, "the model has no output '{}' (outputs: {})", out,
                     names_of(session().outputs()));
      }
      const Type& type = session().outputs()[*index].type;
      if (type.is_known() && info->type.is_known() && !stream::compatible(info->type, type)) {
        return error(Code::kInvalidArgument, "state '{}' is {}, but '{}' is {}", in, info->type.to_string(), out,
                     type.to_string());
      }
      layout_->states.push_back({.input = info, .output = *index});
    }
    return {};
  }

  bool is_state_output(size_t index) const {
    return std::any_of(layout_->states.begin(), layout_->states.end(),
                       [&](const StreamLayout::State& s) { return s.output == index; });
  }

  void find_states() {
    stream::Unpaired unpaired;
    unpaired.is_fed = !layout_->timed.empty();
    const auto inputs = session().inputs();
    for (const IoInfo& info : inputs) unpaired.inputs.push_back(is_free(info) && !info.has_default);
    for (size_t i = 0; i < session().outputs().size(); ++i) unpaired.outputs.push_back(!is_state_output(i));
    for (stream::FoundPair& pair : stream::find_state_pairs(session(), std::move(unpaired))) {
      const IoInfo* input = &inputs[pair.input];
      layout_->states.push_back({.input = input, .output = pair.output, .found = std::move(pair.how)});
      taken_.push_back(input);
    }
  }

  // Only for models that take blocks of any size, which may be made for whole signals; a model that takes blocks of one
  // size was made for blocks.
  void find_edges() {
    const ir::Graph& graph = session().graph();
    std::vector<const ir::Value*> states;
    for (const StreamLayout::State& s : layout_->states)
      states.push_back(graph.top().inputs[position(session(), s.input->name)]);
    for (StreamLayout::Timed& t : layout_->timed) {
      const Type& type = t.input->type;
      if (!type.has_shape || type.shape[static_cast<size_t>(t.axis)].is_known()) continue;
      t.edges = stream::edges_of_blocks(graph, graph.top().inputs[position(session(), t.input->name)], t.axis, states);
    }
  }

  Status take_initial() {
    for (auto& [name, value] : options_.initial) {
      const auto state = std::find_if(layout_->states.begin(), layout_->states.end(),
                                      [&](const StreamLayout::State& s) { return s.input->name == name; });
      if (state == layout_->states.end()) {
        std::string states;
        for (const StreamLayout::State& s : layout_->states) states += (states.empty() ? "" : ", ") + s.input->name;
        return error(Code::kInvalidArgument, "'{}' has a first value but is no state (states: {})", name,
                     states.empty() ? "none" : states);
      }
      state->initial = std::move(value);
      state->has_initial = true;
    }
    return {};
  }

  Status find_time() {
    const IoInfo* only = nullptr;
    for (const IoInfo& info : session().inputs()) {
      if (!is_free(info) || info.has_default || !info.type.is_tensor() || is_string(info.type.element)) continue;
      if (info.type.has_shape && info.type.rank() == 0) continue;
      if (only) {
        return error(Code::kInvalidArgument, "'{}' and '{}' may both be cut along time: say which, and the axis",
                     only->name, info.name);
      }
      only = &info;
    }
    if (!only) return error(Code::kInvalidArgument, "no input is left that could be cut along time");
    const std::optional<int64_t> axis = find_axis(only->type);
    if (!axis) {
      return error(Code::kInvalidArgument, "the time axis of '{}' ({}) is not evident: say which it is", only->name,
                   only->type.to_string());
    }
    layout_->timed.push_back({only, *axis, true});
    taken_.push_back(only);
    return {};
  }

  // The only axis of open size (the first of several is the batch), or else the only axis with a window's size.
  std::optional<int64_t> find_axis(const Type& type) const {
    std::vector<int64_t> open, window;
    for (int64_t i = 0; i < type.rank(); ++i) {
      const Dim& dim = type.shape[static_cast<size_t>(i)];
      if (!dim.is_known()) open.push_back(i);
      if (dim.is_known(options_.hop + options_.context)) window.push_back(i);
    }
    if (open.size() > 1 && open.front() == 0) open.erase(open.begin());
    if (open.size() == 1 && !(open.front() == 0 && window.size() == 1)) return open.front();
    if (window.size() == 1) return window.front();
    return std::nullopt;
  }

  // An output runs along time if one of its sizes has the name of a timed input's length.
  int64_t output_axis(size_t index) const {
    for (const auto& [output, axis] : output_axes_) {
      if (output == index) return axis;
    }
    const Type& type = session().outputs()[index].type;
    if (!type.is_tensor() || !type.has_shape) return -1;
    for (const StreamLayout::Timed& timed : layout_->timed) {
      if (!timed.input->type.has_shape) continue;
      const std::string_view length = timed.input->type.shape[static_cast<size_t>(timed.axis)].symbol_name();
      if (length.empty()) continue;
      for (size_t i = 0; i < type.shape.size(); ++i) {
        if (type.shape[i].symbol_name() == length) return static_cast<int64_t>(i);
      }
    }
    return -1;
  }

  Status sort_outputs() {
    for (size_t i = 0; i < session().outputs().size(); ++i) {
      if (is_state_output(i)) continue;
      layout_->outputs.push_back({i, output_axis(i)});
      layout_->output_names.push_back(session().outputs()[i].name);
      layout_->run_outputs.push_back(i);
    }
    for (const auto& state : layout_->states) layout_->run_outputs.push_back(state.output);
    if (layout_->run_outputs.empty()) return error(Code::kInvalidArgument, "the model has no outputs");
    return {};
  }

  Status find_over_time() {
    std::vector<stream::TimedInput> timed;
    for (const StreamLayout::Timed& t : layout_->timed) {
      if (!t.input->type.has_shape) {
        return error(Code::kInvalidArgument, "cannot be streamed because the rank of '{}' is not known", t.input->name);
      }
      timed.push_back({t.input->name, t.axis, t.input->type.shape[static_cast<size_t>(t.axis)].symbol_name()});
    }
    std::vector<std::string_view> carried;
    for (const StreamLayout::State& s : layout_->states) carried.push_back(s.input->name);
    TREADLE_ASSIGN(layout_->over_time, OverTime::make(session(), timed, carried, layout_->bound));
    for (StreamLayout::Output& o : layout_->outputs) {
      const stream::Streamed::Output& found = layout_->over_time->outputs[o.index];
      o.time_axis = found.timed ? found.axis : -1;
    }
    return {};
  }

  // Whether runs may be made by position: all results are tensors, and no output is returned twice.
  bool by_position() const {
    const auto is_tensor = [&](size_t output) { return session().outputs()[output].type.is_tensor(); };
    const std::set<size_t> different(layout_->run_outputs.begin(), layout_->run_outputs.end());
    return session().options().tier != Tier::kReference && different.size() == layout_->run_outputs.size() &&
           std::all_of(layout_->run_outputs.begin(), layout_->run_outputs.end(), is_tensor);
  }

  void list_inputs() {
    for (const auto list : {session().inputs(), session().overridable()}) {
      for (const IoInfo& info : list) layout_->inputs.push_back({&info});
    }
    const auto set = [&](std::string_view name, StreamLayout::Role role, size_t index) {
      const auto input = std::find_if(layout_->inputs.begin(), layout_->inputs.end(),
                                      [&](const StreamLayout::Input& i) { return i.info->name == name; });
      input->role = role;
      input->index = index;
      return static_cast<size_t>(input - layout_->inputs.begin());
    };
    for (size_t i = 0; i < layout_->states.size(); ++i) {
      layout_->states[i].at = set(layout_->states[i].input->name, StreamLayout::Role::kState, i);
    }
    layout_->bound_feeds.resize(layout_->inputs.size());
    for (size_t i = 0; i < layout_->bound.size(); ++i) {
      const auto& [name, value] = layout_->bound[i];
      layout_->bound_feeds[set(name, StreamLayout::Role::kBound, i)] = &value;
    }
    for (size_t i = 0; i < layout_->timed.size(); ++i) {
      StreamLayout::Timed& timed = layout_->timed[i];
      timed.at = set(timed.input->name, StreamLayout::Role::kTimed, i);
    }
  }

  StreamOptions options_;
  std::shared_ptr<StreamLayout> layout_;
  std::vector<const IoInfo*> taken_;
  std::vector<std::pair<size_t, int64_t>> output_axes_;
};

}  // namespace

Result<std::shared_ptr<const StreamLayout>> StreamLayout::make(std::shared_ptr<const Session> session,
                                                               StreamOptions options) {
  return LayoutBuilder(std::move(session), std::move(options)).build();
}

Result<std::shared_ptr<const StreamLayout>> StreamLayout::on(std::shared_ptr<const Session> other,
                                                             std::shared_ptr<const OverTime> blocks) const {
  auto layout = std::make_shared<StreamLayout>(*this);
  const auto same = [&](const IoInfo*& info) -> Status {
    for (const auto list : {other->inputs(), other->overridable()}) {
      for (const IoInfo& candidate : list) {
        if (candidate.name != info->name) continue;
        info = &candidate;
        return {};
      }
    }
    return error(Code::kInternal, "a model made for streams lacks input '{}'", info->name);
  };
  for (State& state : layout->states) TREADLE_TRY(same(state.input));
  for (Timed& t : layout->timed) TREADLE_TRY(same(t.input));
  for (const IoInfo*& info : layout->given) TREADLE_TRY(same(info));
  for (size_t i = 0; i < layout->inputs.size(); ++i) {
    TREADLE_TRY(same(layout->inputs[i].info));
    if (inputs[i].role == Role::kBound) layout->bound_feeds[i] = &layout->bound[inputs[i].index].second;
  }
  layout->session = std::move(other);
  layout->over_time = std::move(blocks);
  find_first_sizes(*layout);
  return std::shared_ptr<const StreamLayout>(std::move(layout));
}

const std::string& StreamLayout::state_name(size_t state) const {
  return state < states.size() ? states[state].input->name : over_time->states[state - states.size()];
}

}  // namespace treadle
