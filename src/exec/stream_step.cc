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

// Whether a run, which writes into what is in the place of a result, may do so there: nobody else sees it.
bool is_free(const AnyValue& place) {
  return place.is_none() || (place.is_tensor() && place.tensor().exclusive());
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

size_t hand_over(Stream::Pushed& from, std::span<AnyValue* const> to) {
  for (size_t i = 0; i < from.outputs.size(); ++i) {
    if (!copied(from.outputs[i], *to[i])) *to[i] = std::move(from.outputs[i]);
  }
  return from.runs;
}

}  // namespace

Result<size_t> Stream::push_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                                 const RunOptions& options) {
  if (const Session* session = step_session(feeds)) {
    TREADLE_TRY(step(*session, outputs, options));
    return size_t{1};
  }
  TREADLE_ASSIGN(Pushed made, advance(feeds, false, options));
  return hand_over(made, outputs);
}

Result<size_t> Stream::flush_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                                  const RunOptions& options) {
  TREADLE_ASSIGN(Pushed made, advance(feeds, true, options));
  return hand_over(made, outputs);
}

// What a push of these feeds runs; null when it has to go the long way: the first one, samples that wait before or
// after it, feeds that are wrong.
const Session* Stream::step_session(std::span<const Feed> feeds) {
  const StreamLayout& layout = *layout_;
  if (!layout.can_step || ended_ || pending_ != 0 || (layout.over_time && !begun_)) return nullptr;
  if (feeds.size() != layout.timed.size() + layout.given.size()) return nullptr;
  for (size_t i = 0; i < states_.size(); ++i) {
    if (is_initial_[i] || !states_[i].is_tensor()) return nullptr;
  }
  std::vector<const AnyValue*>& fed = scratch_.fed;
  fed.clear();
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
    fed.push_back(chunk);
  }
  for (const IoInfo* info : layout.given) {
    fed.push_back(find_feed(feeds, info->name));
    if (!fed.back() || !fed.back()->is_tensor()) return nullptr;
  }
  if (layout.over_time) return samples % layout.over_time->hop == 0 ? layout.over_time->steady.get() : nullptr;
  const bool one_run = layout.timed.empty() || layout.hop == 0 || samples == layout.hop;
  return one_run ? layout.session.get() : nullptr;
}

void Stream::ready_step(const Session& session) {
  if (scratch_.session == &session) return;
  const StreamLayout& layout = *layout_;
  scratch_.session = &session;
  const std::vector<ir::Value*>& inputs = session.graph().top().inputs;
  const auto position = [&](std::string_view name) {
    const auto it = std::find_if(inputs.begin(), inputs.end(), [&](const ir::Value* v) { return v->name == name; });
    return static_cast<size_t>(it - inputs.begin());
  };
  scratch_.run = {};
  scratch_.run.inputs.resize(inputs.size());
  scratch_.fed_at.clear();
  scratch_.states_at.clear();
  for (const StreamLayout::Timed& timed : layout.timed) scratch_.fed_at.push_back(position(timed.input->name));
  for (const IoInfo* info : layout.given) scratch_.fed_at.push_back(position(info->name));
  for (const StreamLayout::State& state : layout.states) scratch_.states_at.push_back(position(state.input->name));
  for (size_t i = 0; i < found_.size(); ++i) scratch_.states_at.push_back(position(layout.over_time->states[i]));
  for (const auto& [name, value] : layout.bound) scratch_.run.inputs[position(name)] = &value;
  scratch_.run.outputs.resize(session.outputs().size());
  scratch_.rows.resize(layout.outputs.size());
  scratch_.spare.resize(scratch_.states_at.size());
  scratch_.windows.resize(layout.context > 0 ? layout.timed.size() : 0);
}

// Context and chunk, joined.
Status Stream::join_step() {
  const StreamLayout& layout = *layout_;
  for (size_t i = 0; i < scratch_.windows.size(); ++i) {
    const int64_t axis = layout.timed[i].axis;
    const Tensor& chunk = scratch_.fed[i]->tensor();
    Tensor& window = scratch_.windows[i].tensor();
    if (!tails_[i].exclusive()) {
      TREADLE_ASSIGN(tails_[i], tails_[i].clone());
    }
    Dims dims = chunk.dims();
    const int64_t samples = dims[static_cast<size_t>(axis)];
    dims[static_cast<size_t>(axis)] += layout.context;
    if (!can_take(window, chunk.type(), dims)) {
      TREADLE_ASSIGN(scratch_.windows[i], Tensor::allocate(chunk.type(), std::move(dims)));
    }
    copy_along(tails_[i], 0, layout.context, window, 0, axis);
    copy_along(chunk, 0, samples, window, layout.context, axis);
  }
  return {};
}

// Nothing that is carried changes before the run has succeeded.
Status Stream::step(const Session& session, std::span<AnyValue* const> outputs, const RunOptions& options) {
  const StreamLayout& layout = *layout_;
  ready_step(session);
  TREADLE_TRY(join_step());
  const size_t declared = states_.size(), states = scratch_.states_at.size();
  RepeatedRun& run = scratch_.run;
  for (size_t i = 0; i < scratch_.fed_at.size(); ++i) {
    run.inputs[scratch_.fed_at[i]] = i < scratch_.windows.size() ? &scratch_.windows[i] : scratch_.fed[i];
  }
  const auto state = [&](size_t i) -> AnyValue& { return i < declared ? states_[i] : found_[i - declared]; };
  for (size_t i = 0; i < states; ++i) {
    if (!is_free(scratch_.spare[i])) scratch_.spare[i] = {};
    run.inputs[scratch_.states_at[i]] = &state(i);
    run.outputs[layout.block_outputs[outputs.size() + i]] = &scratch_.spare[i];
  }
  const auto stacks = [&](size_t i) { return layout.hop > 0 && layout.outputs[i].time_axis < 0; };
  for (size_t i = 0; i < outputs.size(); ++i) {
    AnyValue& into = *outputs[i];
    const bool in_place = is_free(into);
    if (in_place && stacks(i)) scratch_.rows[i] = unstacked(std::exchange(into, {}));
    run.outputs[layout.block_outputs[i]] = in_place && !stacks(i) ? &into : &scratch_.rows[i];
  }
  Status status = session.run(run, options);
  for (size_t i = 0; i < outputs.size(); ++i) {
    AnyValue& made = *run.outputs[layout.block_outputs[i]];
    AnyValue& into = *outputs[i];
    if (status.ok()) keep_output(i, made);
    if (&made == &into) continue;
    AnyValue row = std::exchange(made, {});
    if (!status.ok() && !into.is_none()) continue;
    into = stacks(i) && row.is_tensor() ? stacked(std::move(row)) : std::move(row);
  }
  if (!status.ok()) return status;
  for (size_t i = 0; i < states; ++i) std::swap(scratch_.spare[i], state(i));
  for (size_t i = 0; i < scratch_.windows.size(); ++i) {
    const int64_t axis = layout.timed[i].axis;
    const Tensor& window = scratch_.windows[i].tensor();
    const int64_t samples = window.dims()[static_cast<size_t>(axis)] - layout.context;
    copy_along(window, samples, layout.context, tails_[i], 0, axis);
  }
  return {};
}

// What later pushes look back at.
void Stream::keep_output(size_t output, const AnyValue& value) {
  if (!layout_->over_time || layout_->outputs[output].time_axis >= 0) {
    last_dims_[output] = value.tensor().dims();
  } else if (!copied(value, last_values_[output])) {
    auto own = value.tensor().clone();  // the caller may have the next push write into this one
    last_values_[output] = own.ok() ? AnyValue(std::move(*own)) : value;
  }
}

}  // namespace treadle
