#include "stream/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>

namespace treadle {

namespace {

constexpr std::array<std::string_view, 30> kRoleWords = {
    "in",     "out",     "input", "output", "inputs",  "outputs", "next",  "new", "prev",    "previous",
    "past",   "present", "old",   "init",   "initial", "final",   "last",  "cur", "current", "updated",
    "before", "after",   "n",     "t",      "tm1",     "y",       "start", "end", "result",  "begin"};

bool is_role_word(std::string_view token) {
  return std::find(kRoleWords.begin(), kRoleWords.end(), token) != kRoleWords.end();
}

bool is_number(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](unsigned char c) { return std::isdigit(c); });
}

// "stateN" -> state, n; "h0" -> h, 0; "hn" -> h, n (a letter and its index); "past_key_values.0.key" in words.
std::vector<std::string> tokens_of(std::string_view name) {
  std::vector<std::string> tokens;
  bool open = false;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (!std::isalnum(c)) {
      open = false;
      continue;
    }
    const auto before = static_cast<unsigned char>(i > 0 ? name[i - 1] : 0);
    const bool boundary = (std::isupper(c) && std::islower(before)) || (!std::isdigit(c) != !std::isdigit(before));
    if (!open || boundary) tokens.emplace_back();
    tokens.back().push_back(static_cast<char>(std::tolower(c)));
    open = true;
  }
  if (!tokens.empty() && tokens.back().size() == 2 && (tokens.back()[1] == 'n' || tokens.back()[1] == 't') &&
      !is_role_word(tokens.back())) {
    const std::string last = tokens.back();
    tokens.back() = last.substr(0, 1);
    tokens.push_back(last.substr(1));
  }
  return tokens;
}

bool compatible(const Type& a, const Type& b) {
  if (!same_structure(a, b)) return false;
  if (!a.has_shape || !b.has_shape) return true;
  if (a.rank() != b.rank()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (a.shape[i].is_known() && b.shape[i].is_known() && !same(a.shape[i], b.shape[i])) return false;
  }
  return true;
}

std::string names_of(std::span<const IoInfo> infos) {
  std::string names;
  for (const IoInfo& info : infos) names += (names.empty() ? "" : ", ") + info.name;
  return names.empty() ? "none" : names;
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
    if (layout_->timed.empty() && (options_.hop > 0 || options_.context > 0)) TREADLE_TRY(find_time());
    for (const IoInfo& info : session().inputs()) {
      if (is_free(info)) layout_->given.push_back(&info);
    }
    TREADLE_TRY(sort_outputs());
    if (!layout_->timed.empty() && options_.hop == 0 && options_.context == 0) TREADLE_TRY(find_over_time());
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

  // Has no role yet and must be given one.
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

  // The axis whose size has the name.
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
      if (type.is_known() && info->type.is_known() && !compatible(info->type, type)) {
        return error(Code::kInvalidArgument, "state '{}' is {}, but '{}' is {}", in, info->type.to_string(), out,
                     type.to_string());
      }
      layout_->states.push_back({info, *index, {}});
    }
    return {};
  }

  bool is_state_output(size_t index) const {
    return std::any_of(layout_->states.begin(), layout_->states.end(),
                       [&](const StreamLayout::State& s) { return s.output == index; });
  }

  bool may_pair(const IoInfo& in, size_t out, bool numbers) const {
    const IoInfo& info = session().outputs()[out];
    return is_free(in) && !in.has_default && !is_state_output(out) && compatible(in.type, info.type) &&
           state_stem(in.name, numbers) == state_stem(info.name, numbers);
  }

  // A pair counts only where neither side has a second candidate.
  void find_states() {
    for (const bool numbers : {false, true}) {
      for (const IoInfo& in : session().inputs()) {
        std::optional<size_t> match;
        size_t candidates = 0;
        for (size_t out = 0; out < session().outputs().size(); ++out) {
          if (!may_pair(in, out, numbers)) continue;
          match = out;
          ++candidates;
        }
        if (candidates != 1) continue;
        const auto inputs = session().inputs();
        if (std::count_if(inputs.begin(), inputs.end(),
                          [&](const IoInfo& other) { return may_pair(other, *match, numbers); }) != 1) {
          continue;
        }
        layout_->states.push_back({&in, *match, {}, false, true});
        taken_.push_back(&in);
      }
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

  // The only axis of open size (the first one of several is the batch), or the only one of a window's size.
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

  // An output runs along time where one of its sizes carries the name of a timed input's length.
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

  // All results are tensors, each with one place.
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

std::string state_stem(std::string_view name, bool numbers) {
  constexpr std::string_view kCache = "past_key_values";  // against "present"
  std::vector<std::string> tokens =
      tokens_of(name.substr(0, kCache.size()) == kCache ? name.substr(kCache.size()) : name);
  if (numbers && tokens.size() > 1 && is_number(tokens.back())) tokens.pop_back();
  std::string stem;
  for (const std::string& token : tokens) {
    if (is_role_word(token)) continue;
    if (!stem.empty()) stem += ' ';
    stem += token;
  }
  return stem.empty() ? std::string(name) : stem;
}

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
  return std::shared_ptr<const StreamLayout>(std::move(layout));
}

const std::string& StreamLayout::state_name(size_t state) const {
  return state < states.size() ? states[state].input->name : over_time->states[state - states.size()];
}

std::string StreamLayout::to_string() const {
  const auto outs = session->outputs();
  std::string text = over_time ? fmt::format("stream over time: blocks of {} samples, {} in the first, delay {}\n",
                                             over_time->hop, over_time->first, over_time->delay)
                     : hop > 0 ? fmt::format("stream: a run per {} samples, {} of context\n", hop, context)
                               : fmt::format("stream: a run per push, {} samples of context\n", context);
  for (const State& s : states) {
    text += fmt::format("  state  {} <- {}  {}{}\n", s.input->name, outs[s.output].name, s.input->type.to_string(),
                        s.found ? "  (found by name)" : "");
  }
  if (over_time) {
    for (const std::string& name : over_time->states) text += fmt::format("  state  {}  (found)\n", name);
  }
  for (const Timed& t : timed) {
    text += fmt::format("  time   {} along axis {}  {}{}\n", t.input->name, t.axis, t.input->type.to_string(),
                        t.found ? "  (found)" : "");
  }
  for (const auto& [name, value] : bound) text += fmt::format("  bound  {}  {}\n", name, value.type().to_string());
  for (const IoInfo* info : given) {
    text += fmt::format("  given  {} with each push  {}\n", info->name, info->type.to_string());
  }
  for (const Output& o : outputs) {
    text += fmt::format("  output {}  {}, {}\n", outs[o.index].name, outs[o.index].type.to_string(),
                        over_time && o.time_axis >= 0 ? fmt::format("frames along axis {}", o.time_axis)
                        : over_time                   ? std::string("so far")
                        : hop == 0                    ? std::string("as it is")
                        : o.time_axis >= 0            ? fmt::format("joined along axis {}", o.time_axis)
                                                      : std::string("stacked"));
  }
  return text;
}

}  // namespace treadle
