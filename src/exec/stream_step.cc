// The short way of a push that is one run over whole hops. States and their successors take turns in two pieces of
// memory, context and chunk are joined in a piece that stays, outputs are written where the caller wants them.
#include <algorithm>
#include <cstring>

#include "exec/stream.h"
#include "exec/stream_layout.h"
#include "exec/stream_runs.h"
#include "exec/tensor_slices.h"

namespace treadle {

namespace {

bool agree_beside(const Dims& a, const Dims& b, int64_t axis) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && static_cast<int64_t>(i) != axis) return false;
  }
  return true;
}

// Results are stacked along a new first axis, whose size is 1 here.
AnyValue stacked(AnyValue value) {
  Dims dims = value.tensor().dims();
  dims.insert(size_t{0}, 1);
  return value.tensor().reshaped(std::move(dims));
}

AnyValue unstacked(AnyValue value) {
  if (!value.is_tensor() || value.tensor().rank() == 0 || value.tensor().dims()[0] != 1) return {};
  const Dims& dims = value.tensor().dims();
  Dims rest;
  for (size_t i = 1; i < dims.size(); ++i) rest.push_back(dims[i]);
  return value.tensor().reshaped(std::move(rest));
}

bool can_take(const Tensor& into, ElementType type, const Dims& dims) {
  return into.defined() && into.exclusive() && into.type() == type && into.dims() == dims && !is_string(type);
}

// Copies where `to` has the memory; false where it has not.
bool copied(const AnyValue& from, AnyValue& to) {
  if (!from.is_tensor() || !to.is_tensor()) return false;
  const Tensor& tensor = from.tensor();
  if (!can_take(to.tensor(), tensor.type(), tensor.dims())) return false;
  if (tensor.byte_size() > 0) std::memcpy(to.tensor().mutable_raw(), tensor.raw(), tensor.byte_size());
  return true;
}

void hand_over(Stream::Pushed& from, Stream::Pushed& to) {
  to.runs = from.runs;
  to.outputs.resize(from.outputs.size());
  for (size_t i = 0; i < from.outputs.size(); ++i) {
    if (!copied(from.outputs[i], to.outputs[i])) to.outputs[i] = std::move(from.outputs[i]);
  }
}

}  // namespace

Status Stream::push_into(std::span<const Feed> feeds, Pushed& pushed, const RunOptions& options) {
  if (const Session* session = step_session(feeds)) return step(*session, feeds, pushed, options);
  TREADLE_ASSIGN(Pushed made, advance(feeds, false, options));
  hand_over(made, pushed);
  return {};
}

Status Stream::flush_into(std::span<const Feed> feeds, Pushed& pushed, const RunOptions& options) {
  TREADLE_ASSIGN(Pushed made, advance(feeds, true, options));
  hand_over(made, pushed);
  return {};
}

// What a push of these feeds runs; null when it has to go the long way: the first one, samples that wait before or
// after it, feeds that are wrong.
const Session* Stream::step_session(std::span<const Feed> feeds) const {
  const StreamLayout& layout = *layout_;
  if (!layout.can_step || ended_ || pending_ != 0 || (layout.over_time && !begun_)) return nullptr;
  if (feeds.size() != layout.timed.size() + layout.given.size()) return nullptr;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (is_initial_[i] || states_[i].is_none()) return nullptr;
  }
  for (const IoInfo* info : layout.given) {
    if (!find_feed(feeds, info->name)) return nullptr;
  }
  int64_t samples = -1;
  for (size_t i = 0; i < layout.timed.size(); ++i) {
    const AnyValue* chunk = find_feed(feeds, layout.timed[i].input->name);
    const Tensor& tail = tails_[i];
    if (!chunk || !chunk->is_tensor() || !tail.defined() || chunk->tensor().type() != tail.type()) return nullptr;
    const int64_t axis = layout.timed[i].axis;
    if (!agree_beside(chunk->tensor().dims(), tail.dims(), axis)) return nullptr;
    const int64_t here = chunk->tensor().dims()[static_cast<size_t>(axis)];
    if (here == 0 || (i > 0 && here != samples)) return nullptr;
    samples = here;
  }
  if (layout.over_time) return samples % layout.over_time->hop == 0 ? layout.over_time->steady.get() : nullptr;
  const bool one_run = layout.timed.empty() || layout.hop == 0 || samples == layout.hop;
  return one_run ? layout.session.get() : nullptr;
}

Status Stream::fill_step(std::span<const Feed> feeds) {
  const StreamLayout& layout = *layout_;
  scratch_.feeds.clear();
  for (const auto& [name, value] : layout.bound) scratch_.feeds.push_back({name, value});
  scratch_.feeds.insert(scratch_.feeds.end(), feeds.begin(), feeds.end());
  scratch_.windows.resize(layout.context > 0 ? layout.timed.size() : 0);
  for (size_t i = 0; i < scratch_.windows.size(); ++i) {
    const int64_t axis = layout.timed[i].axis;
    const auto feed = std::find_if(scratch_.feeds.begin(), scratch_.feeds.end(),
                                   [&](const Feed& f) { return f.name == layout.timed[i].input->name; });
    const Tensor& chunk = feed->value.tensor();
    Tensor& window = scratch_.windows[i];
    if (!tails_[i].exclusive()) {
      TREADLE_ASSIGN(tails_[i], tails_[i].clone());
    }
    Dims dims = chunk.dims();
    const int64_t samples = dims[static_cast<size_t>(axis)];
    dims[static_cast<size_t>(axis)] += layout.context;
    if (!can_take(window, chunk.type(), dims)) {
      TREADLE_ASSIGN(window, Tensor::allocate(chunk.type(), std::move(dims)));
    }
    copy_along(tails_[i], 0, layout.context, window, 0, axis);
    copy_along(chunk, 0, samples, window, layout.context, axis);
    feed->value = window;
  }
  for (size_t i = 0; i < states_.size(); ++i) scratch_.feeds.push_back({state_name(i), states_[i]});
  for (size_t i = 0; i < found_.size(); ++i) scratch_.feeds.push_back({layout.over_time->states[i], found_[i]});
  return {};
}

Status Stream::step(const Session& session, std::span<const Feed> feeds, Pushed& pushed, const RunOptions& options) {
  const StreamLayout& layout = *layout_;
  const std::vector<size_t>& wanted = layout.block_outputs;
  const size_t outputs = layout.outputs.size(), declared = states_.size();
  const auto stacks = [&](size_t i) { return layout.hop > 0 && layout.outputs[i].time_axis < 0; };
  TREADLE_TRY(fill_step(feeds));
  std::vector<AnyValue>& results = scratch_.results;
  results.resize(wanted.size());
  scratch_.spare.resize(wanted.size() - outputs);
  pushed.outputs.resize(outputs);
  for (size_t i = 0; i < outputs; ++i) {
    results[i] = stacks(i) ? unstacked(std::move(pushed.outputs[i])) : std::move(pushed.outputs[i]);
  }
  for (size_t i = outputs; i < wanted.size(); ++i) results[i] = std::move(scratch_.spare[i - outputs]);
  Status status = session.run(scratch_.feeds, wanted, results, options);
  scratch_.feeds.clear();
  if (status.ok()) {
    for (size_t i = 0; i < scratch_.spare.size(); ++i) {
      AnyValue& state = i < declared ? states_[i] : found_[i - declared];
      scratch_.spare[i] = std::exchange(state, std::move(results[outputs + i]));
    }
    keep_step({results.data(), outputs});
    pushed.runs = 1;
  } else {
    for (size_t i = 0; i < scratch_.spare.size(); ++i) scratch_.spare[i] = std::move(results[outputs + i]);
  }
  for (size_t i = 0; i < outputs; ++i) {
    const bool stack = stacks(i) && results[i].is_tensor();
    pushed.outputs[i] = stack ? stacked(std::move(results[i])) : std::move(results[i]);
  }
  return status;
}

// What later pushes look back at.
void Stream::keep_step(std::span<const AnyValue> outputs) {
  const StreamLayout& layout = *layout_;
  for (size_t i = 0; i < scratch_.windows.size(); ++i) {
    const int64_t axis = layout.timed[i].axis;
    const int64_t samples = scratch_.windows[i].dims()[static_cast<size_t>(axis)] - layout.context;
    copy_along(scratch_.windows[i], samples, layout.context, tails_[i], 0, axis);
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (layout.over_time && layout.outputs[i].time_axis < 0) {
      if (copied(outputs[i], last_values_[i])) continue;
      auto own = outputs[i].tensor().clone();  // the caller may have the next push write into this one
      last_values_[i] = own.ok() ? AnyValue(std::move(*own)) : outputs[i];
    } else {
      last_dims_[i] = outputs[i].tensor().dims();
    }
  }
}

}  // namespace treadle
