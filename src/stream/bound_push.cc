#include "stream/bound_push.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "stream/layout.h"
#include "stream/tensor_slices.h"

namespace treadle {

namespace {

using Role = StreamLayout::Role;

// Bytes of one position of `axis`.
size_t position_bytes(const Dims& dims, int64_t axis, ElementType type) {
  size_t bytes = byte_width(type);
  for (size_t i = static_cast<size_t>(axis) + 1; i < dims.size(); ++i) bytes *= static_cast<size_t>(dims[i]);
  return bytes;
}

size_t outer_positions(const Dims& dims, int64_t axis) {
  size_t count = 1;
  for (size_t i = 0; i < static_cast<size_t>(axis); ++i) count *= static_cast<size_t>(dims[i]);
  return count;
}

std::byte* bytes_of(Tensor& tensor) {
  return static_cast<std::byte*>(tensor.mutable_raw());
}

const std::byte* bytes_of(const Tensor& tensor) {
  return static_cast<const std::byte*>(tensor.raw());
}

}  // namespace

void BoundPush::Piece::copy(const std::byte* from, std::byte* to) const {
  for (size_t i = 0; i < outer; ++i) std::memcpy(to + i * to_stride, from + i * from_stride, bytes);
}

// --- Binding ---------------------------------------------------------------------------------------------------------

BoundPush::BoundPush(std::span<const Feed> feeds, std::span<AnyValue* const> outputs, const RunOptions& options)
    : places_(outputs.begin(), outputs.end()), options_(options) {
  names_.reserve(feeds.size());  // feeds refer to them
  for (const Feed& feed : feeds) {
    names_.emplace_back(feed.name);
    feeds_.push_back({names_.back(), feed.value});
  }
}

Status BoundPush::settle(const StreamLayout& layout, const Push& pushed, const Carried& carried) {
  const Block& block = pushed.block();
  if (!pushed.by_position()) {
    why_ = "an input, an output or a state is no tensor, or two outputs are one value";
    return {};
  }
  over_time_ = layout.over_time != nullptr;
  begun_ = carried.begun;
  pending_ = carried.pending;
  samples_ = block.samples;
  context_ = layout.context;
  count_ = block.count;
  std::vector<uint8_t> varies;
  why_ = settle_inputs(layout, pushed, carried, varies);
  if (why_.empty()) why_ = settle_states(layout, pushed, carried);
  if (!why_.empty()) return {};
  TREADLE_ASSIGN(run_, block.session->bind(pushed.repeated(), varies, options_, why_));
  if (!run_) return {};
  Status status;
  for (size_t i = 0; i < timed_.size() && status.ok(); ++i) status = settle_timed(timed_[i], layout, i);
  if (status.ok()) status = settle_outputs(layout);
  if (status.ok()) status = settle_rest(pushed.repeated(), varies);
  if (!status.ok() || !why_.empty()) run_.reset();
  return status;
}

std::string BoundPush::settle_inputs(const StreamLayout& layout, const Push& pushed, const Carried& carried,
                                     std::vector<uint8_t>& varies) {
  varies.assign(pushed.repeated().inputs.size(), 0);
  for (size_t k = 0; k < layout.inputs.size(); ++k) {
    const StreamLayout::Input& input = layout.inputs[k];
    const size_t at = pushed.input_at(k);
    const auto fed =
        std::find_if(feeds_.begin(), feeds_.end(), [&](const Feed& f) { return f.name == input.info->name; });
    if (input.role == Role::kState) varies[at] = 1;
    if (fed == feeds_.end()) continue;  // bound, or a default: it stays as it is
    varies[at] = 1;
    const Tensor& tensor = fed->value->tensor();
    if (!tensor.defined()) return "an input has no value";
    if (input.role == Role::kGiven) given_.push_back({at, fed->value, {tensor.type(), tensor.dims()}});
  }
  for (size_t i = 0; i < layout.timed.size(); ++i) {
    const StreamLayout::Timed& role = layout.timed[i];
    Timed& timed = timed_.emplace_back();
    timed.input = pushed.input_at(role.at);
    timed.chunk =
        std::find_if(feeds_.begin(), feeds_.end(), [&](const Feed& f) { return f.name == role.input->name; })->value;
    const Tensor& chunk = timed.chunk->tensor();
    timed.kind = {chunk.type(), chunk.dims()};
    timed.tail_kind = {carried.tails[i].type(), carried.tails[i].dims()};
    if (is_string(chunk.type()) || chunk.element_count() == 0) return "samples are texts, or there are none";
  }
  return {};
}

std::string BoundPush::settle_states(const StreamLayout& layout, const Push& pushed, const Carried& carried) {
  const size_t declared = layout.states.size(), all = declared + carried.found.size();
  for (size_t i = 0; i < all; ++i) {
    const size_t input = i < declared ? pushed.input_at(layout.states[i].at) : pushed.found_at(i - declared);
    const size_t output = layout.block_outputs[layout.outputs.size() + i];
    const Tensor& value = carried.state(i).tensor();
    states_.push_back({input, output, {value.type(), value.dims()}});
  }
  return {};
}

Status BoundPush::settle_timed(Timed& timed, const StreamLayout& layout, size_t index) {
  const int64_t axis = layout.timed[index].axis;
  const auto at = static_cast<size_t>(axis);
  const Kind& kind = timed.kind;
  const auto before = static_cast<size_t>(context_ + pending_), fresh = static_cast<size_t>(kind.dims[at]);
  const size_t total = before + fresh, length = static_cast<size_t>(context_ + samples_);
  const size_t outer = outer_positions(kind.dims, axis);
  timed.sample_bytes = position_bytes(kind.dims, axis, kind.type);
  timed.is_joined = before > 0 || count_ > 1;
  if (!timed.is_joined) return {};
  const size_t one = timed.sample_bytes, whole = total * one;
  const auto sized = [&](size_t positions) {
    Dims dims = kind.dims;
    dims[at] = static_cast<int64_t>(positions);
    return Tensor::allocate(kind.type, std::move(dims));
  };
  TREADLE_ASSIGN(timed.joined, sized(total));
  timed.is_viewed = outer == 1 || total == length;
  if (!timed.is_viewed) {
    TREADLE_ASSIGN(timed.window, sized(length));
  }
  timed.old = {outer, before * one, before * one, whole};
  timed.fresh = {outer, fresh * one, fresh * one, whole};
  timed.cut = {outer, length * one, whole, length * one};
  timed.rest = {outer, before * one, whole, before * one};
  timed.fresh_at = before * one;
  timed.rest_at = (total - before) * one;
  return {};
}

Status BoundPush::settle_outputs(const StreamLayout& layout) {
  for (size_t i = 0; i < layout.outputs.size(); ++i) {
    Output& made = outputs_.emplace_back();
    made.output = layout.block_outputs[i];
    made.place = places_[i];
    const Kind row = run_->kind_of(made.output);
    const ElementType type = row.type;
    made.row_dims = row.dims;
    const int64_t axis = layout.outputs[i].time_axis;
    made.keeps_value = over_time_ && axis < 0;
    made.is_whole = count_ == 1 && (axis < 0 || context_ == 0);
    Dims dims = made.row_dims;
    if (element_count_unchecked(dims) == 0) {
      why_ = "an output has no elements";
      return {};
    }
    const auto count = static_cast<int64_t>(count_);
    if (axis < 0 && layout.hop > 0) {  // stacked
      dims.insert(size_t{0}, count);
      const auto bytes = static_cast<size_t>(element_count_unchecked(made.row_dims)) * byte_width(type);
      made.part = {1, bytes, bytes, bytes};
      made.part_step = bytes;
    } else if (axis >= 0) {
      const auto at = static_cast<size_t>(axis);
      const int64_t frames = dims[at], skipped = context_ == 0 ? 0 : context_ * frames / (context_ + samples_);
      const int64_t part = frames - skipped;
      dims[at] = part * count;
      const size_t one = position_bytes(dims, axis, type), bytes = static_cast<size_t>(part) * one;
      made.part = {outer_positions(dims, axis), bytes, static_cast<size_t>(frames) * one, bytes * count_};
      made.part_at = static_cast<size_t>(skipped) * one;
      made.part_step = bytes;
    }
    TREADLE_TRY(resize(*made.place, type, dims));
    made.kind = {type, std::move(dims)};
    if (made.is_whole) continue;
    TREADLE_ASSIGN(made.row, Tensor::allocate(type, made.row_dims));
    run_->write_to(made.output, made.row.mutable_raw());
  }
  for (size_t k = 0; k < std::min<size_t>(count_, 2); ++k) {
    for (const State& state : states_) {
      TREADLE_ASSIGN(Tensor memory, Tensor::allocate(state.kind.type, state.kind.dims));
      next_[k].push_back(std::move(memory));
    }
  }
  return {};
}

// Inputs that stay as they are, and outputs that nothing takes.
Status BoundPush::settle_rest(const RepeatedRun& run, std::span<const uint8_t> varies) {
  for (size_t i = 0; i < run.inputs.size(); ++i) {
    if (!varies[i]) run_->read_from(i, run.inputs[i]->tensor().raw());
  }
  std::vector<uint8_t> is_taken(run.outputs.size(), 0);
  for (const Output& output : outputs_) is_taken[output.output] = 1;
  for (const State& state : states_) {
    is_taken[state.output] = 1;
    const Kind next = run_->kind_of(state.output);
    if (run_->takes(state.input, state.kind) && next.type == state.kind.type && next.dims == state.kind.dims) continue;
    why_ = "a state changes its size";
    return {};
  }
  return run_->keep_others(is_taken);
}

// --- Steps -----------------------------------------------------------------------------------------------------------

bool BoundPush::is_as_bound(const Carried& carried) const {
  if (carried.begun != begun_ || carried.ended || carried.pending != pending_) return false;
  if (carried.states.size() + carried.found.size() != states_.size()) return false;
  for (const uint8_t initial : carried.is_initial) {
    if (initial) return false;
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    if (!states_[i].kind.is_of(carried.state(i))) return false;
  }
  for (size_t i = 0; i < timed_.size(); ++i) {
    if (!timed_[i].kind.is_of(*timed_[i].chunk) || !timed_[i].tail_kind.is_of(carried.tails[i])) return false;
  }
  for (const Given& given : given_) {
    if (!given.kind.is_of(*given.value)) return false;
  }
  for (const Output& output : outputs_) {
    if (!output.kind.is_of(*output.place) || !output.place->tensor().exclusive()) return false;
  }
  return true;
}

// A fork, or the caller, may hold memory that the stream has written before.
Status BoundPush::renew_memory(Carried& carried) {
  for (size_t k = 0; k < std::min<size_t>(count_, 2); ++k) {
    for (size_t i = 0; i < states_.size(); ++i) {
      if (next_[k][i].exclusive()) continue;
      TREADLE_ASSIGN(next_[k][i], Tensor::allocate(states_[i].kind.type, states_[i].kind.dims));
    }
  }
  for (size_t i = 0; i < timed_.size(); ++i) {
    if (timed_[i].rest.bytes == 0 || carried.tails[i].exclusive()) continue;
    TREADLE_ASSIGN(carried.tails[i], carried.tails[i].clone());
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const auto& [type, dims] = outputs_[i].kind;
    if (!outputs_[i].keeps_value || can_take(carried.last_values[i], type, dims)) continue;
    TREADLE_TRY(resize(outputs_[i].kept, type, dims));
  }
  return {};
}

// Joins the context, waiting samples and new samples.
void BoundPush::join(const Carried& carried) {
  for (size_t i = 0; i < timed_.size(); ++i) {
    Timed& timed = timed_[i];
    const std::byte* chunk = bytes_of(timed.chunk->tensor());
    if (!timed.is_joined) {
      run_->read_from(timed.input, chunk);
      continue;
    }
    std::byte* joined = bytes_of(timed.joined);
    if (timed.old.bytes > 0) timed.old.copy(bytes_of(carried.tails[i]), joined);
    timed.fresh.copy(chunk, joined + timed.fresh_at);
  }
}

// Sets the memory of a run.
void BoundPush::point(size_t run, const Carried& carried) {
  for (Timed& timed : timed_) {
    if (!timed.is_joined) continue;
    const std::byte* window = bytes_of(timed.joined) + run * static_cast<size_t>(samples_) * timed.sample_bytes;
    if (!timed.is_viewed) timed.cut.copy(window, bytes_of(timed.window));
    run_->read_from(timed.input, timed.is_viewed ? window : bytes_of(timed.window));
  }
  for (size_t i = 0; i < states_.size(); ++i) {
    const State& state = states_[i];
    const Tensor& before = run == 0 ? carried.state(i).tensor() : next_[(run + 1) % 2][i];
    run_->read_from(state.input, before.raw());
    run_->write_to(state.output, next_[run % 2][i].mutable_raw());
  }
}

void BoundPush::take_rows(size_t run) {
  for (Output& output : outputs_) {
    if (output.is_whole) continue;
    output.part.copy(bytes_of(output.row) + output.part_at, bytes_of(output.place->tensor()) + run * output.part_step);
  }
}

void BoundPush::commit(Carried& carried) {
  std::vector<Tensor>& next = next_[(count_ - 1) % 2];
  for (size_t i = 0; i < states_.size(); ++i) next[i].exchange_memory(carried.state(i).tensor());
  for (size_t i = 0; i < timed_.size(); ++i) {
    Timed& timed = timed_[i];
    if (timed.rest.bytes > 0) {
      timed.rest.copy(bytes_of(timed.joined) + timed.rest_at, bytes_of(carried.tails[i]));
    }
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Output& output = outputs_[i];
    if (!output.keeps_value) {
      if (!(carried.last_dims[i] == output.row_dims)) carried.last_dims[i] = output.row_dims;
      continue;
    }
    const Tensor& value = output.place->tensor();
    if (!can_take(carried.last_values[i], output.kind.type, output.kind.dims)) {
      carried.last_values[i] = std::exchange(output.kept, {});
    }
    std::memcpy(carried.last_values[i].tensor().mutable_raw(), value.raw(), value.byte_size());
  }
}

Result<size_t> BoundPush::step(const StreamLayout& layout, Carried& carried, Push& push) {
  if (!run_ || !is_as_bound(carried)) return push.make(layout, carried, feeds_, false, places_, options_);
  TREADLE_TRY(renew_memory(carried));
  for (const Given& given : given_) run_->read_from(given.input, given.value->tensor().raw());
  for (const Output& output : outputs_) {
    if (output.is_whole) run_->write_to(output.output, output.place->tensor().mutable_raw());
  }
  join(carried);
  for (size_t run = 0; run < count_; ++run) {
    point(run, carried);
    Status status = run_->run();
    if (!status.ok())
      return count_ == 1 ? std::move(status) : std::move(status).in(fmt::format("hop {} of the push:", run));
    take_rows(run);
  }
  commit(carried);
  return count_;
}

}  // namespace treadle
