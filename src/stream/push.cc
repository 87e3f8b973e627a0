#include "stream/push.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "run/progress.h"
#include "stream/layout.h"
#include "stream/tensor_slices.h"

namespace treadle {

namespace {

using Role = StreamLayout::Role;

Status check_chunk(const IoInfo& info, int64_t axis, const AnyValue& value) {
  bool fits = value.is_tensor() && value.tensor().type() == info.type.element && value.tensor().rank() > axis &&
              (!info.type.has_shape || value.tensor().rank() == info.type.rank());
  for (size_t i = 0; fits && i < info.type.shape.size(); ++i) {
    const Dim& size = info.type.shape[i];
    fits = static_cast<int64_t>(i) == axis || !size.is_known() || size.is_known(value.tensor().dims()[i]);
  }
  if (fits) return {};
  return error(Code::kInvalidArgument, "input '{}' takes {}, not {}", info.name, info.type.to_string(),
               value.type().to_string());
}

int64_t size_along(const Tensor& tensor, int64_t axis) {
  return tensor.dims()[static_cast<size_t>(axis)];
}

// Whether the tensor is `samples` with length 0 along the time axis.
bool is_without(const Tensor& tensor, const Tensor& samples, int64_t axis) {
  const Dims &dims = tensor.dims(), &whole = samples.dims();
  bool same = tensor.defined() && dims.size() == whole.size() && size_along(tensor, axis) == 0;
  for (size_t i = 0; same && i < dims.size(); ++i) same = dims[i] == whole[i] || static_cast<int64_t>(i) == axis;
  return same;
}

// The largest number of samples that may wait for the next push.
int64_t most_waiting(const StreamLayout& layout) {
  const int64_t hop = layout.over_time ? layout.over_time->hop : layout.hop;
  return layout.context + std::max<int64_t>(hop - 1, 0);
}

}  // namespace

// --- Feeds, and the runs that follow ---------------------------------------------------------------------------------

int64_t samples_to_run(const StreamLayout& layout, bool begun, int64_t available) {
  if (const OverTime* over_time = layout.over_time.get()) {
    if (begun) return available / over_time->hop * over_time->hop;
    if (available < over_time->first) return 0;
    return over_time->first + (available - over_time->first) / over_time->hop * over_time->hop;
  }
  return layout.hop > 0 ? available / layout.hop * layout.hop : available;
}

Status sort_feeds(const StreamLayout& layout, std::span<const Feed> feeds, bool last,
                  std::vector<const AnyValue*>& fed) {
  const std::vector<StreamLayout::Input>& inputs = layout.inputs;
  fed = layout.bound_feeds;
  for (const Feed& feed : feeds) {
    size_t k = 0;
    while (k < inputs.size() && inputs[k].info->name != feed.name) ++k;
    if (k == inputs.size()) return error(Code::kInvalidArgument, "the model has no input '{}'", feed.name);
    const Role role = inputs[k].role;
    if (role == Role::kState) {
      return error(Code::kInvalidArgument, "input '{}' is a state of the stream; set it as such", feed.name);
    }
    if (role == Role::kTimed && last) {
      return error(Code::kInvalidArgument, "flush() takes no samples of '{}'", feed.name);
    }
    if (role == Role::kGiven && layout.over_time && inputs[k].info->has_default) {
      return error(Code::kInvalidArgument, "input '{}' stays the same in a stream over time: bind it", feed.name);
    }
    if (fed[k]) return error(Code::kInvalidArgument, "input '{}' is bound, or given twice", feed.name);
    fed[k] = feed.value;
  }
  for (const StreamLayout::Timed& timed : layout.timed) {
    if (last) continue;
    const AnyValue* chunk = fed[timed.at];
    if (!chunk) return error(Code::kInvalidArgument, "samples of input '{}' are missing", timed.input->name);
    TREADLE_TRY(check_chunk(*timed.input, timed.axis, *chunk));
  }
  return {};
}

Status Push::begin(const StreamLayout& layout, const Carried& carried, std::span<const Feed> feeds, bool last) {
  if (carried.ended) {
    return error(Code::kInvalidArgument, "the stream has been flushed and has ended: reset() begins it anew");
  }
  prepare(layout);
  carried_ = &carried;
  last_ = last;
  TREADLE_TRY(sort_feeds(layout, feeds, last, fed_));
  available_ = carried.pending;
  samples_.clear();
  for (size_t i = 0; i < layout.timed.size(); ++i) {
    if (last && !carried.tails[i].defined()) break;
    if (last) TREADLE_TRY(pad(i));
    TREADLE_TRY(join(i));
  }
  block_ = choose_block();
  TREADLE_TRY(size_states());
  return next_tails();
}

void Push::prepare(const StreamLayout& layout) {
  if (layout_ == &layout) return;
  const size_t outputs = layout.outputs.size();
  for (auto* values : {&padding_, &joined_, &windows_, &tails_}) values->resize(layout.timed.size());
  for (auto* values : {&last_values_, &kept_}) values->resize(outputs);
  last_dims_.resize(outputs);
  sized_states_.resize(layout.states.size());
  gathered_.clear();
  for (size_t i = 0; i < outputs; ++i) {
    gathered_.push_back(Gathered({.name = layout.output_names[i],
                                  .axis = layout.outputs[i].time_axis,
                                  .context = layout.context,
                                  .stacks = layout.hop > 0}));
  }
  layout_ = &layout;  // everything exists
}

// At the end, pads waiting samples with zeros to a whole hop. Over time, the last block takes them unpadded.
Status Push::pad(size_t timed) {
  const StreamLayout::Timed& role = layout_->timed[timed];
  const Tensor& tail = carried_->tails[timed];
  Dims dims = tail.dims();
  const bool fills = !layout_->over_time && carried_->pending > 0;
  dims[static_cast<size_t>(role.axis)] = fills ? layout_->hop - carried_->pending : 0;
  TREADLE_ASSIGN(padding_[timed], zeros(tail.type(), std::move(dims)));
  fed_[role.at] = &padding_[timed];
  return {};
}

// Joins the context, waiting samples and new samples.
Status Push::join(size_t timed) {
  const StreamLayout::Timed& role = layout_->timed[timed];
  const AnyValue* chunk = fed_[role.at];
  const int64_t before = layout_->context + carried_->pending;
  const int64_t available = carried_->pending + size_along(chunk->tensor(), role.axis);
  if (timed > 0 && available != available_) {
    return error(Code::kInvalidArgument, "inputs '{}' and '{}' get unlike numbers of samples ({} and {})",
                 layout_->timed[0].input->name, role.input->name, available_ - carried_->pending,
                 available - carried_->pending);
  }
  available_ = available;
  samples_.push_back(before > 0 ? &joined_[timed] : chunk);
  if (before == 0) return {};
  Tensor silence;
  if (!carried_->tails[timed].defined()) {
    Dims dims = chunk->tensor().dims();
    dims[static_cast<size_t>(role.axis)] = before;
    TREADLE_ASSIGN(silence, zeros(chunk->tensor().type(), std::move(dims)));
  }
  const std::array<const Tensor*, 2> parts = {silence.defined() ? &silence : &carried_->tails[timed], &chunk->tensor()};
  const int64_t room = most_waiting(*layout_) + size_along(chunk->tensor(), role.axis);
  Status status = concat_into(parts, role.axis, joined_[timed], room);
  if (status.ok()) return status;
  return std::move(status).in(fmt::format("input '{}'", role.input->name));
}

// Over time, one run takes all complete hops. The first block and the rest at the end have graphs of their own. The
// model itself runs a signal that ends before the first block is complete.
Block Push::choose_block() const {
  const StreamLayout& layout = *layout_;
  const int64_t here = available_;
  if (const OverTime* over_time = layout.over_time.get()) {
    const int64_t hop = over_time->hop;
    if (last_ && carried_->begun) return {over_time->last.get(), here, 1, here / hop, true, false};
    if (last_) return here > 0 ? Block{layout.session.get(), here, 1, here / hop} : Block{};
    const int64_t samples = samples_to_run(layout, carried_->begun, here);
    if (samples == 0) return {};
    if (carried_->begun) return {over_time->steady.get(), samples, 1, samples / hop, true, true};
    return {over_time->start.get(), samples, 1, 1 + (samples - over_time->first) / hop, false, true};
  }
  if (layout.timed.empty()) return last_ ? Block{} : Block{layout.session.get(), 0, 1, 1};
  const int64_t all = samples_to_run(layout, carried_->begun, here);
  if (all == 0) return {};
  const int64_t samples = layout.hop > 0 ? layout.hop : all;
  return {layout.session.get(), samples, static_cast<size_t>(all / samples), all / samples};
}

// The sizes that the inputs give to the names in their declared types. Time axes are left out, because their sizes
// change.
Symbols Push::symbols() const {
  Symbols found;
  const auto bind = [&](const IoInfo& info, const AnyValue& value, int64_t skip) {
    if (!value.is_tensor() || !info.type.has_shape || info.type.rank() != value.tensor().rank()) return;
    for (size_t i = 0; i < info.type.shape.size(); ++i) {
      if (static_cast<int64_t>(i) == skip || info.type.shape[i].symbol_name().empty()) continue;
      found.emplace_back(info.type.shape[i].symbol_name(), value.tensor().dims()[i]);
    }
  };
  for (size_t i = 0; i < samples_.size(); ++i) {
    bind(*layout_->timed[i].input, *samples_[i], layout_->timed[i].axis);
  }
  for (size_t k = 0; k < fed_.size(); ++k) {
    const StreamLayout::Input& input = layout_->inputs[k];
    if (input.role == Role::kGiven && fed_[k] && !input.info->has_default) bind(*input.info, *fed_[k], -1);
  }
  return found;
}

// States with their initial zeros take their open sizes (the batch) from the inputs.
Status Push::size_states() {
  if (!block_.session) return {};
  for (size_t i = 0; i < sized_states_.size(); ++i) {
    if (!carried_->is_initial[i]) continue;
    TREADLE_ASSIGN(sized_states_[i],
                   treadle::first_state(*layout_->states[i].input, layout_->states[i].first.shape, symbols()));
  }
  if (block_.gives_found && carried_->found.empty()) found_.resize(layout_->over_time->states.size());
  return {};
}

const AnyValue& Push::first_state(size_t i) const {
  return i < carried_->states.size() && carried_->is_initial[i] ? sized_states_[i] : carried_->state(i);
}

// Copies the samples behind the runs, with their context, so that neither the caller's array nor a long join is kept
// alive.
Status Push::next_tails() {
  const int64_t used = static_cast<int64_t>(block_.count) * block_.samples;
  const int64_t rest = layout_->context + available_ - used;
  new_tails_ = false;
  for (size_t i = 0; i < samples_.size(); ++i) {
    const int64_t axis = layout_->timed[i].axis;
    new_tails_ |= rest > 0 || !is_without(carried_->tails[i], samples(i), axis);
  }
  for (size_t i = 0; new_tails_ && i < samples_.size(); ++i) {
    TREADLE_TRY(slice_into(samples(i), layout_->timed[i].axis, used, rest, tails_[i],
                           std::max<int64_t>(most_waiting(*layout_), 1)));
  }
  return {};
}

// --- The runs -------------------------------------------------------------------------------------------------------

void Push::prepare_run(const Session& session) {
  if (session_ == &session) return;
  session_ = nullptr;
  const std::vector<ir::Value*>& inputs = session.graph().top().inputs;
  const auto position = [&](std::string_view name) {
    const auto it = std::find_if(inputs.begin(), inputs.end(), [&](const ir::Value* v) { return v->name == name; });
    return static_cast<size_t>(it - inputs.begin());
  };
  at_.clear();
  found_at_.clear();
  for (const StreamLayout::Input& input : layout_->inputs) at_.push_back(position(input.info->name));
  for (size_t i = 0; block_.takes_found && i < carried_->found.size(); ++i) {
    found_at_.push_back(position(layout_->over_time->states[i]));
  }
  repeated_ = {};
  repeated_.inputs.resize(inputs.size());
  repeated_.outputs.resize(session.outputs().size());
  const size_t found = block_.gives_found ? layout_->over_time->states.size() : 0;
  for (std::vector<AnyValue>& states : next_) states.resize(layout_->states.size() + found);
  session_ = &session;  // everything exists
}

// The window of a timed input for one run.
Result<const AnyValue*> Push::window(size_t run, size_t timed) {
  const int64_t axis = layout_->timed[timed].axis, length = layout_->context + block_.samples;
  if (size_along(samples(timed), axis) == length) return samples_[timed];
  TREADLE_TRY(
      slice_into(samples(timed), axis, static_cast<int64_t>(run) * block_.samples, length, windows_[timed], length));
  return &windows_[timed];
}

// Sets the inputs that are the same in all runs.
void Push::feed_all_runs() {
  by_position_ = layout_->by_position;
  for (size_t k = 0; k < at_.size(); ++k) {
    const StreamLayout::Input& input = layout_->inputs[k];
    const AnyValue* value = input.role == Role::kState ? &first_state(input.index) : fed_[k];
    if (value && value->is_none()) value = nullptr;
    repeated_.inputs[at_[k]] = value;
    by_position_ &= value ? value->is_tensor() : input.info->has_default;
  }
  for (size_t i = 0; i < found_at_.size(); ++i) {
    repeated_.inputs[found_at_[i]] = &carried_->found[i];
    by_position_ &= carried_->found[i].is_tensor();
  }
  for (size_t i = 0; i < gathered_.size(); ++i) repeated_.outputs[layout_->block_outputs[i]] = &gathered_[i].row();
}

// Sets the samples, and the states, which each run takes from the run before. Carried data does not change.
Status Push::feed(size_t run) {
  for (size_t i = 0; i < samples_.size(); ++i) {
    TREADLE_ASSIGN(repeated_.inputs[at_[layout_->timed[i].at]], window(run, i));
  }
  for (size_t i = 0; i < layout_->states.size() && run > 0; ++i) {
    const AnyValue& state = next_[(run + 1) % 2][i];
    repeated_.inputs[at_[layout_->states[i].at]] = state.is_none() ? nullptr : &state;
  }
  for (size_t i = 0; i < next_[0].size(); ++i) {
    AnyValue& next = next_[run % 2][i];
    if (!is_free(next)) next = {};
    repeated_.outputs[layout_->block_outputs[gathered_.size() + i]] = &next;
  }
  return {};
}

// Passes inputs by position if possible (tensors only, not in the reference interpreter), because that allocates no
// memory.
Status Push::run_session(const RunOptions& options) {
  if (by_position_) return session_->run(repeated_, options);
  const std::vector<ir::Value*>& inputs = session_->graph().top().inputs;
  std::vector<Feed> feeds;
  std::vector<size_t> wanted;
  std::vector<AnyValue*> places;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (repeated_.inputs[i]) feeds.push_back({inputs[i]->name, repeated_.inputs[i]});
  }
  for (size_t i = 0; i < repeated_.outputs.size(); ++i) {
    if (!repeated_.outputs[i]) continue;
    wanted.push_back(i);
    places.push_back(repeated_.outputs[i]);
  }
  return session_->run(feeds, wanted, places, options);
}

namespace {

// Progress of a push of several runs: the push reports to its caller as the outermost loop, in place of its runs.
class Hops {
 public:
  Hops(const RunOptions& options, size_t count)
      : options_(options), watched_(options), count_(static_cast<int64_t>(count)) {
    watched_.progress = [](void* hops, int64_t, int64_t) { return static_cast<Hops*>(hops)->report(); };
    watched_.progress_context = this;
  }
  const RunOptions& of_run() const { return options_.progress && count_ > 1 ? watched_ : options_; }
  void made() { ++made_; }
  Status finish() const {
    if (!options_.progress || count_ < 2 || !options_.progress(options_.progress_context, made_, count_)) return {};
    return error(Code::kCancelled, "the push was interrupted");
  }

 private:
  // Each run calls it at intervals, and at its end.
  bool report() {
    const auto now = Limits::Clock::now();
    if (now < next_) return false;
    next_ = now + run::kReportInterval;
    return options_.progress(options_.progress_context, made_, count_);
  }

  const RunOptions& options_;
  RunOptions watched_;
  int64_t made_ = 0, count_;
  Limits::Clock::time_point next_;
};

}  // namespace

Status Push::run(const RunOptions& options) {
  if (!block_.session) return {};
  prepare_run(*block_.session);
  feed_all_runs();
  Hops hops(options, block_.count);
  for (size_t run = 0; run < block_.count; ++run, hops.made()) {
    TREADLE_TRY(feed(run));
    Status status = run_session(hops.of_run());
    if (!status.ok() && block_.count == 1) return status;
    if (!status.ok()) return std::move(status).in(fmt::format("hop {} of the push:", run));
    for (size_t i = 0; !by_position_ && i < next_[0].size(); ++i) {  // two states may have one output
      AnyValue& next = next_[run % 2][i];
      const AnyValue& made = *repeated_.outputs[layout_->block_outputs[gathered_.size() + i]];
      if (&made != &next) next = made;
    }
    for (Gathered& output : gathered_) TREADLE_TRY(output.take());
  }
  return hops.finish();
}

}  // namespace treadle
