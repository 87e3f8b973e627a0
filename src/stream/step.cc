// The fast way of a push, in buffers that the stream keeps. States and their successors take turns in two or three
// buffers, and so do the samples that wait; another buffer joins the samples that waited with the chunk; outputs are
// written where the caller wants them. The number of hops a push completes may alternate between n and n+1. Buffers for
// both sizes are kept.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "stream/layout.h"
#include "stream/runs.h"
#include "stream/stream.h"
#include "stream/tensor_slices.h"

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

// Gives the tensor these sizes: in its own memory where that is large enough, else in new memory, which has room for
// `room` positions of `axis`.
Status resize(AnyValue& value, ElementType type, Dims dims, int64_t axis, int64_t room) {
  Tensor& tensor = value.tensor();
  if (can_take(tensor, type, dims)) return {};
  TREADLE_ASSIGN(const int64_t count, element_count(dims));
  const bool has_room = tensor.exclusive() && tensor.raw() == tensor.buffer()->data() && !is_string(type) &&
                        static_cast<size_t>(count) * byte_width(type) <= tensor.buffer()->size();
  if (!has_room) {
    Dims most = dims;
    most[static_cast<size_t>(axis)] = std::max(room, dims[static_cast<size_t>(axis)]);
    TREADLE_ASSIGN(value, Tensor::allocate(type, std::move(most)));
  }
  tensor = Tensor::from_buffer(type, std::move(dims), tensor.buffer());
  return {};
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
  if (const std::optional<StepRuns> runs = short_way(feeds)) {
    TREADLE_ASSIGN(const bool done, step(*runs, outputs, options));
    if (done) return runs->count;
  }
  TREADLE_ASSIGN(Pushed made, advance(feeds, false, options));
  return hand_over(made, outputs);
}

Result<size_t> Stream::flush_into(std::span<const Feed> feeds, std::span<AnyValue* const> outputs,
                                  const RunOptions& options) {
  TREADLE_ASSIGN(Pushed made, advance(feeds, true, options));
  return hand_over(made, outputs);
}

// What a push of these feeds runs; nothing when it has to go the long way: the first one, feeds that are wrong.
std::optional<StepRuns> Stream::short_way(std::span<const Feed> feeds) {
  const StreamLayout& layout = *layout_;
  if (!layout.can_step || ended_ || (layout.over_time && !begun_)) return {};
  if (feeds.size() != layout.timed.size() + layout.given.size()) return {};
  for (size_t i = 0; i < states_.size(); ++i) {
    if (is_initial_[i] || !states_[i].is_tensor()) return {};
  }
  std::vector<const AnyValue*>& fed = scratch_.fed;
  fed.clear();
  int64_t samples = -1;
  for (size_t i = 0; i < layout.timed.size(); ++i) {
    const AnyValue* chunk = find_feed(feeds, layout.timed[i].input->name);
    const Tensor& tail = tails_[i];
    if (!chunk || !chunk->is_tensor() || !tail.defined() || chunk->tensor().type() != tail.type()) return {};
    const int64_t axis = layout.timed[i].axis;
    if (!agree_beside(chunk->tensor().dims(), tail.dims(), axis)) return {};
    const int64_t here = chunk->tensor().dims()[static_cast<size_t>(axis)];
    if (here == 0 || (i > 0 && here != samples)) return {};
    samples = here;
    fed.push_back(chunk);
  }
  for (const IoInfo* info : layout.given) {
    fed.push_back(find_feed(feeds, info->name));
    if (!fed.back() || !fed.back()->is_tensor()) return {};
  }
  return divide(pending_ + samples);
}

std::optional<StepRuns> Stream::divide(int64_t available) const {
  const StreamLayout& layout = *layout_;
  if (const OverTime* over_time = layout.over_time.get()) {
    const int64_t hops = available / over_time->hop;
    return StepRuns{over_time->steady.get(), available, hops * over_time->hop, size_t{hops > 0}, hops};
  }
  if (layout.timed.empty() || layout.hop == 0) return StepRuns{layout.session.get(), available, available, 1, 1};
  const int64_t hops = available / layout.hop;
  // What a run would give is not known before one has run.
  const bool knows_sizes = std::none_of(last_dims_.begin(), last_dims_.end(), [](const Dims& d) { return d.empty(); });
  if (hops == 0 && !knows_sizes) return {};
  return StepRuns{layout.session.get(), available, layout.hop, static_cast<size_t>(hops), hops};
}

void Stream::ready_step(const Session& session) {
  if (scratch_.session == &session) return;
  const StreamLayout& layout = *layout_;
  scratch_.session = nullptr;
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
  scratch_.kept.resize(layout.outputs.size());
  scratch_.fresh.resize(layout.outputs.size());
  for (std::vector<AnyValue>& spare : scratch_.spare) spare.resize(scratch_.states_at.size());
  for (auto* values : {&scratch_.joined, &scratch_.windows}) values->resize(layout.timed.size());
  scratch_.tails.resize(layout.timed.size());
  scratch_.session = &session;  // all of it is there
}

// Samples that may wait for their run, at most.
int64_t Stream::most_waiting() const {
  const int64_t hop = layout_->over_time ? layout_->over_time->hop : layout_->hop;
  return std::max<int64_t>(hop - 1, 0);
}

// What came before and the chunk, joined, unless the only run takes the chunk as it is.
Status Stream::join_step(const StepRuns& runs) {
  const StreamLayout& layout = *layout_;
  scratch_.joins = layout.context > 0 || runs.count != 1 || pending_ > 0 || runs.available != runs.samples;
  for (size_t i = 0; scratch_.joins && i < layout.timed.size(); ++i) {
    const int64_t axis = layout.timed[i].axis, before = layout.context + pending_;
    const Tensor& chunk = scratch_.fed[i]->tensor();
    Dims dims = chunk.dims();
    const int64_t here = dims[static_cast<size_t>(axis)];
    dims[static_cast<size_t>(axis)] += before;
    TREADLE_TRY(
        resize(scratch_.joined[i], chunk.type(), std::move(dims), axis, layout.context + most_waiting() + here));
    Tensor& joined = scratch_.joined[i].tensor();
    copy_along(tails_[i], 0, before, joined, 0, axis);
    copy_along(chunk, 0, here, joined, before, axis);
  }
  return {};
}

// What run `index` of a push sees of timed input `i`.
Result<const AnyValue*> Stream::window_of(const StepRuns& runs, size_t index, size_t i) {
  if (!scratch_.joins) return scratch_.fed[i];
  const int64_t axis = layout_->timed[i].axis, length = layout_->context + runs.samples;
  const Tensor& joined = scratch_.joined[i].tensor();
  Dims dims = joined.dims();
  if (dims[static_cast<size_t>(axis)] == length) return &scratch_.joined[i];
  dims[static_cast<size_t>(axis)] = length;
  TREADLE_TRY(resize(scratch_.windows[i], joined.type(), std::move(dims), axis, length));
  copy_along(joined, static_cast<int64_t>(index) * runs.samples, length, scratch_.windows[i].tensor(), 0, axis);
  return &scratch_.windows[i];
}

// The samples behind the runs, with their context; `waiting`: where the stream keeps them from now on.
Status Stream::next_tails(const StepRuns& runs) {
  const int64_t used = static_cast<int64_t>(runs.count) * runs.samples;
  for (size_t i = 0; scratch_.joins && i < layout_->timed.size(); ++i) {
    const int64_t axis = layout_->timed[i].axis, length = layout_->context + runs.available - used;
    const Tensor& joined = scratch_.joined[i].tensor();
    Dims dims = joined.dims();
    dims[static_cast<size_t>(axis)] = length;
    TREADLE_TRY(resize(scratch_.tails[i], joined.type(), std::move(dims), axis, layout_->context + most_waiting()));
    copy_along(joined, used, length, scratch_.tails[i].tensor(), 0, axis);
  }
  return {};
}

// Results of pushes that complete an even number of hops and of those that complete an odd one have sizes of their own,
// so where that changes, what is in the caller's places waits for the next change.
void Stream::turn_places(bool odd, std::span<AnyValue* const> outputs) {
  if (scratch_.odd != odd) {
    for (size_t i = 0; i < outputs.size(); ++i) std::swap(*outputs[i], scratch_.kept[i]);
  }
  scratch_.odd = odd;
}

AnyValue& Stream::carried(size_t i) {
  return i < states_.size() ? states_[i] : found_[i - states_.size()];
}

// Where states of run `index` come from and go to. Nothing that is carried changes before all runs have succeeded.
void Stream::lend_states(size_t index) {
  const size_t outputs = layout_->outputs.size();
  for (size_t i = 0; i < scratch_.states_at.size(); ++i) {
    AnyValue& next = scratch_.spare[index % 2][i];
    if (!is_free(next)) next = {};
    scratch_.run.inputs[scratch_.states_at[i]] = index == 0 ? &carried(i) : &scratch_.spare[(index + 1) % 2][i];
    scratch_.run.outputs[layout_->block_outputs[outputs + i]] = &next;
  }
}

Status Stream::feed_step(const StepRuns& runs, size_t index) {
  for (size_t i = 0; i < scratch_.fed_at.size(); ++i) {
    const AnyValue* fed = scratch_.fed[i];
    if (i < layout_->timed.size()) {
      TREADLE_ASSIGN(fed, window_of(runs, index, i));
    }
    scratch_.run.inputs[scratch_.fed_at[i]] = fed;
  }
  lend_states(index);
  return {};
}

// False: the runs give results that the short way has no place for. The stream is as it was then.
Result<bool> Stream::step(const StepRuns& runs, std::span<AnyValue* const> outputs, const RunOptions& options) {
  ready_step(*runs.session);
  TREADLE_TRY(join_step(runs));
  TREADLE_TRY(next_tails(runs));
  struct Turn {
    Stream& stream;
    std::span<AnyValue* const> outputs;
    const bool was_odd = stream.scratch_.odd;
    bool stays = false;
    ~Turn() {
      if (!stays) stream.turn_places(was_odd, outputs);
    }
  } turn{*this, outputs};
  turn_places(runs.hops % 2 != 0, outputs);
  auto done = runs.count == 0   ? give_nothing(outputs)
              : runs.count == 1 ? run_once(runs, outputs, options)
                                : run_often(runs, outputs, options);
  if (!done.ok() || !*done) return done;
  turn.stays = true;
  if (runs.count > 0) {
    for (size_t i = 0; i < scratch_.states_at.size(); ++i) {
      std::swap(scratch_.spare[(runs.count - 1) % 2][i], carried(i));
    }
  }
  for (size_t i = 0; scratch_.joins && i < tails_.size(); ++i) std::swap(tails_[i], scratch_.tails[i].tensor());
  pending_ = runs.available - static_cast<int64_t>(runs.count) * runs.samples;
  return true;
}

// No sample completes a run.
Result<bool> Stream::give_nothing(std::span<AnyValue* const> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const int64_t axis = layout_->outputs[i].time_axis;
    if (layout_->over_time && axis < 0) {
      if (!copied(last_values_[i], *outputs[i])) *outputs[i] = last_values_[i];
      continue;
    }
    Dims dims = last_dims_[i];
    if (axis >= 0) {
      if (axis >= static_cast<int64_t>(dims.size())) return false;
      dims[static_cast<size_t>(axis)] = 0;
    } else {
      dims.insert(size_t{0}, 0);
    }
    const ElementType type = layout_->session->outputs()[layout_->outputs[i].index].type.element;
    if (outputs[i]->is_tensor() && can_take(outputs[i]->tensor(), type, dims)) continue;
    TREADLE_ASSIGN(*outputs[i], Tensor::allocate(type, std::move(dims)));
  }
  return true;
}

Result<bool> Stream::run_once(const StepRuns& runs, std::span<AnyValue* const> outputs, const RunOptions& options) {
  const StreamLayout& layout = *layout_;
  RepeatedRun& run = scratch_.run;
  TREADLE_TRY(feed_step(runs, 0));
  const auto stacks = [&](size_t i) { return layout.hop > 0 && layout.outputs[i].time_axis < 0; };
  for (size_t i = 0; i < outputs.size(); ++i) {
    AnyValue& into = *outputs[i];
    const bool in_place = is_free(into);
    if (in_place && stacks(i)) scratch_.rows[i] = unstacked(std::exchange(into, {}));
    run.outputs[layout.block_outputs[i]] = in_place && !stacks(i) ? &into : &scratch_.rows[i];
  }
  Status status;
  std::exception_ptr failure;
  try {
    status = runs.session->run(run, options);
    for (size_t i = 0; status.ok() && i < outputs.size(); ++i) keep_output(i, *run.outputs[layout.block_outputs[i]]);
  } catch (...) {
    failure = std::current_exception();
  }
  // Whatever has happened, what was lent goes back to its place.
  for (size_t i = 0; i < outputs.size(); ++i) {
    AnyValue& made = *run.outputs[layout.block_outputs[i]];
    AnyValue& into = *outputs[i];
    if (&made == &into) continue;
    AnyValue row = std::exchange(made, {});
    if ((failure || !status.ok()) && !into.is_none()) continue;
    into = stacks(i) && row.is_tensor() ? stacked(std::move(row)) : std::move(row);
  }
  if (failure) std::rethrow_exception(failure);
  if (!status.ok()) return status;
  return true;
}

// Several runs, whose results are put together in the caller's places.
Result<bool> Stream::run_often(const StepRuns& runs, std::span<AnyValue* const> outputs, const RunOptions& options) {
  const StreamLayout& layout = *layout_;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!is_free(scratch_.rows[i])) scratch_.rows[i] = {};
    scratch_.fresh[i] = {};
    scratch_.run.outputs[layout.block_outputs[i]] = &scratch_.rows[i];
  }
  for (size_t index = 0; index < runs.count; ++index) {
    TREADLE_TRY(feed_step(runs, index));
    Status status = runs.session->run(scratch_.run, options);
    if (!status.ok()) return std::move(status).in(fmt::format("hop {} of the push:", index));
    for (size_t i = 0; i < outputs.size(); ++i) {
      TREADLE_ASSIGN(const bool fits, put_row(i, index, runs.count, *outputs[i]));
      if (!fits) return false;
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    keep_output(i, scratch_.rows[i]);
    if (!scratch_.fresh[i].is_none()) *outputs[i] = std::exchange(scratch_.fresh[i], {});
  }
  return true;
}

// What run `index` of `count` gave for an output, brought to where it belongs in the result, which is the caller's
// place or, where that does not fit, new; false where it is not like what the first one gave.
Result<bool> Stream::put_row(size_t output, size_t index, size_t count, AnyValue& place) {
  const int64_t axis = layout_->outputs[output].time_axis;
  const Tensor& row = scratch_.rows[output].tensor();
  Dims dims = row.dims();
  if (axis >= static_cast<int64_t>(dims.size()) || is_string(row.type())) return false;
  const int64_t frames = axis >= 0 ? dims[static_cast<size_t>(axis)] : 1;
  if (axis >= 0) {
    dims[static_cast<size_t>(axis)] = frames * static_cast<int64_t>(count);
  } else {
    dims.insert(size_t{0}, static_cast<int64_t>(count));
  }
  AnyValue& fresh = scratch_.fresh[output];
  if (index == 0 && !(place.is_tensor() && can_take(place.tensor(), row.type(), dims))) {
    TREADLE_ASSIGN(fresh, Tensor::allocate(row.type(), dims));
  }
  Tensor& result = fresh.is_none() ? place.tensor() : fresh.tensor();
  if (result.type() != row.type() || !(result.dims() == dims)) return false;
  if (axis >= 0) {
    copy_along(row, 0, frames, result, static_cast<int64_t>(index) * frames, axis);
  } else if (row.byte_size() > 0) {
    std::memcpy(result.mutable_data<std::byte>() + index * row.byte_size(), row.raw(), row.byte_size());
  }
  return true;
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
