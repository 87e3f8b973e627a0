// Streams over time: each push is one run over all whole hops that have come. The first block has a graph of its own,
// and so has the rest at the end of the signal. The model itself runs a signal that ends before the first block is
// whole.
#include <fmt/format.h>

#include <algorithm>

#include "stream/layout.h"
#include "stream/runs.h"
#include "stream/stream.h"
#include "stream/tensor_slices.h"

namespace treadle {

int64_t Stream::delay() const {
  return layout_->over_time ? layout_->over_time->delay : 0;
}

bool Stream::done() const {
  if (!layout_->over_time || found_.empty()) return false;
  return std::any_of(layout_->over_time->running.begin(), layout_->over_time->running.end(), [&](size_t state) {
    const Tensor& goes_on = found_[state].tensor();
    return goes_on.element_count() == 1 && !*goes_on.data<bool>();
  });
}

Result<Stream::Pushed> Stream::advance_over_time(std::span<const Feed> feeds, bool last, const RunOptions& options) {
  if (ended_) return error(Code::kInvalidArgument, "the stream has been flushed and has ended: reset() begins it anew");
  Runs runs;
  runs.results.resize(layout_->outputs.size());
  runs.states = states_;
  TREADLE_TRY(sort_feeds(feeds, last, runs));
  TREADLE_TRY(join_block(feeds, last, runs));
  bind_symbols(runs);
  const Block block = choose_block(last, runs);
  if (block.session) {
    TREADLE_TRY(settle_states(runs));
    TREADLE_TRY(run_block(block, runs, options));
  }
  return finish_block(block, last, runs);
}

// What a push changes, once it has run. The states in `runs`: declared ones, then those found.
Result<Stream::Pushed> Stream::finish_block(const Block& block, bool last, Runs& runs) {
  Pushed pushed;
  pushed.runs = block.session ? 1 : 0;
  for (size_t i = 0; i < layout_->outputs.size(); ++i) {
    TREADLE_ASSIGN(AnyValue value, give_output(i, runs));
    pushed.outputs.push_back(std::move(value));
  }
  runs.hop = block.samples;
  runs.count = 1;
  TREADLE_ASSIGN(std::vector<Tensor> tails, tails_behind(runs));
  const auto declared = static_cast<std::ptrdiff_t>(states_.size());
  std::vector<AnyValue> found;
  if (block.session) found.assign(runs.states.begin() + declared, runs.states.end());
  std::vector<AnyValue> last_values = last_values_;
  std::vector<Dims> last_dims = last_dims_;
  for (size_t i = 0; i < pushed.outputs.size(); ++i) {
    if (layout_->outputs[i].time_axis < 0) {
      last_values[i] = pushed.outputs[i];
    } else if (pushed.outputs[i].is_tensor()) {
      last_dims[i] = pushed.outputs[i].tensor().dims();
    }
  }
  // From here on nothing fails.
  keep_tails(std::move(tails), runs);
  ended_ = last;
  if (!block.session) return pushed;
  begun_ = true;
  if (block.gives_found) found_ = std::move(found);
  runs.states.erase(runs.states.begin() + declared, runs.states.end());
  states_ = std::move(runs.states);
  std::fill(is_initial_.begin(), is_initial_.end(), 0);
  last_values_ = std::move(last_values);
  last_dims_ = std::move(last_dims);
  return pushed;
}

Status Stream::join_block(std::span<const Feed> feeds, bool last, Runs& runs) const {
  for (const Feed& feed : feeds) {
    const auto fixed = layout_->session->overridable();
    if (std::any_of(fixed.begin(), fixed.end(), [&](const IoInfo& info) { return info.name == feed.name; })) {
      return error(Code::kInvalidArgument, "input '{}' stays the same in a stream over time: bind it", feed.name);
    }
  }
  if (!last) return join_samples(false, runs);
  if (std::none_of(tails_.begin(), tails_.end(), [](const Tensor& t) { return t.defined(); })) return {};
  runs.joined = tails_;
  runs.available = pending_;
  return {};
}

Stream::Block Stream::choose_block(bool last, const Runs& runs) const {
  const OverTime& over_time = *layout_->over_time;
  const int64_t here = runs.available;
  if (!begun_) {
    if (last) return here > 0 ? Block{layout_->session.get(), here, false, false} : Block{};
    if (here < over_time.first) return {};
    const int64_t more = (here - over_time.first) / over_time.hop * over_time.hop;
    return {over_time.start.get(), over_time.first + more, false, true};
  }
  if (last) return {over_time.last.get(), here, true, false};
  const int64_t samples = here / over_time.hop * over_time.hop;
  if (samples == 0) return {};
  return {over_time.steady.get(), samples, true, true};
}

Status Stream::run_block(const Block& block, Runs& runs, const RunOptions& options) const {
  std::vector<Feed> feeds = runs.constant;
  std::vector<AnyValue> samples(layout_->timed.size());
  for (size_t i = 0; i < layout_->timed.size(); ++i) {
    TREADLE_ASSIGN(samples[i], slice_axis(runs.joined[i], layout_->timed[i].axis, 0, block.samples));
    feeds.push_back({layout_->timed[i].input->name, &samples[i]});
  }
  for (size_t i = 0; i < layout_->states.size(); ++i) {
    const IoInfo& info = *layout_->states[i].input;
    if (runs.states[i].is_none() && info.has_default) continue;
    feeds.push_back({info.name, &runs.states[i]});
  }
  const std::vector<std::string>& names = layout_->over_time->states;
  if (block.takes_found) {
    for (size_t i = 0; i < names.size(); ++i) feeds.push_back({names[i], &found_[i]});
  }
  const std::vector<size_t>& wanted = block.gives_found ? layout_->block_outputs : layout_->run_outputs;
  std::vector<AnyValue> results(wanted.size());
  TREADLE_TRY(block.session->run(feeds, wanted, results, options));
  const size_t outputs = layout_->outputs.size();
  for (size_t i = 0; i < outputs; ++i) runs.results[i].push_back(std::move(results[i]));
  runs.states.clear();
  for (size_t i = outputs; i < results.size(); ++i) runs.states.push_back(std::move(results[i]));
  return {};
}

void Stream::take_states(std::vector<AnyValue> states) {
  const auto found = states.begin() + static_cast<std::ptrdiff_t>(states_.size());
  std::move(states.begin(), found, states_.begin());
  states.erase(states.begin(), found);
  found_ = std::move(states);
}

Result<AnyValue> Stream::give_output(size_t output, const Runs& runs) const {
  const int64_t axis = layout_->outputs[output].time_axis;
  if (runs.results[output].empty()) return axis >= 0 ? no_result(output, runs) : Result<AnyValue>(last_values_[output]);
  const AnyValue& value = runs.results[output].front();
  // Without frames, a loop may not know how large they would be; those before say it.
  const bool is_empty = axis >= 0 && value.is_tensor() && value.tensor().element_count() == 0;
  if (!is_empty || last_dims_[output].empty()) return value;
  const Dims& dims = value.tensor().dims();
  const bool lacks_frames = dims.size() <= static_cast<size_t>(axis) || dims[static_cast<size_t>(axis)] == 0;
  return lacks_frames ? no_result(output, runs) : Result<AnyValue>(value);
}

}  // namespace treadle
