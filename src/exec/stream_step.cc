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

// A run writes into what is in the place of a result; not where others see it, as forks and snapshots do.
AnyValue unless_shared(AnyValue place) {
  return place.is_tensor() && place.tensor().exclusive() ? std::move(place) : AnyValue();
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
  if (const Session* session = step_session(feeds)) return step(*session, pushed, options);
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
  for (const auto& [name, value] : layout.bound) scratch_.run.inputs[position(name)] = value;
  const size_t outputs = session.outputs().size();
  scratch_.run.outputs.resize(outputs);
  scratch_.run.wanted = std::make_unique<bool[]>(outputs + 1);
  for (const size_t output : layout.block_outputs) scratch_.run.wanted[output] = true;
  scratch_.spare.resize(scratch_.states_at.size());
  scratch_.windows.resize(layout.context > 0 ? layout.timed.size() : 0);
}

// Context and chunk, joined.
Status Stream::join_step() {
  const StreamLayout& layout = *layout_;
  for (size_t i = 0; i < scratch_.windows.size(); ++i) {
    const int64_t axis = layout.timed[i].axis;
    const Tensor& chunk = scratch_.fed[i]->tensor();
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
  }
  return {};
}

Status Stream::step(const Session& session, Pushed& pushed, const RunOptions& options) {
  const StreamLayout& layout = *layout_;
  ready_step(session);
  TREADLE_TRY(join_step());
  const size_t outputs = layout.outputs.size(), declared = states_.size(), states = scratch_.states_at.size();
  RepeatedRun& run = scratch_.run;
  for (size_t i = 0; i < scratch_.fed_at.size(); ++i) {
    const bool joined = i < scratch_.windows.size();
    run.inputs[scratch_.fed_at[i]] = joined ? AnyValue(scratch_.windows[i]) : *scratch_.fed[i];
  }
  const auto state = [&](size_t i) -> AnyValue& { return i < declared ? states_[i] : found_[i - declared]; };
  for (size_t i = 0; i < states; ++i) {
    run.inputs[scratch_.states_at[i]] = state(i);
    run.outputs[layout.block_outputs[outputs + i]] = unless_shared(std::move(scratch_.spare[i]));
  }
  const auto stacks = [&](size_t i) { return layout.hop > 0 && layout.outputs[i].time_axis < 0; };
  pushed.outputs.resize(outputs);
  for (size_t i = 0; i < outputs; ++i) {
    AnyValue& into = pushed.outputs[i];
    run.outputs[layout.block_outputs[i]] = stacks(i) ? unstacked(std::move(into)) : std::move(into);
  }
  Status status = session.run(run, options);
  for (const size_t at : scratch_.fed_at) run.inputs[at] = {};
  for (size_t i = 0; i < states; ++i) {
    run.inputs[scratch_.states_at[i]] = {};
    scratch_.spare[i] = std::move(run.outputs[layout.block_outputs[outputs + i]]);
    if (status.ok()) std::swap(scratch_.spare[i], state(i));
  }
  for (size_t i = 0; i < outputs; ++i) {
    AnyValue& made = run.outputs[layout.block_outputs[i]];
    if (status.ok()) keep_output(i, made);
    pushed.outputs[i] = stacks(i) && made.is_tensor() ? stacked(std::move(made)) : std::move(made);
  }
  if (!status.ok()) return status;
  for (size_t i = 0; i < scratch_.windows.size(); ++i) {
    const int64_t axis = layout.timed[i].axis;
    const int64_t samples = scratch_.windows[i].dims()[static_cast<size_t>(axis)] - layout.context;
    copy_along(scratch_.windows[i], samples, layout.context, tails_[i], 0, axis);
  }
  pushed.runs = 1;
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
