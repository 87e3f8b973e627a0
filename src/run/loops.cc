// Loops: where a loop begins, its back edge, and its end.
#include <algorithm>
#include <cstring>

#include "base/in_pieces.h"
#include "op/loop_signature.h"
#include "run/context.h"

namespace treadle::run {

using plan::Loop;
using plan::LoopState;
using plan::ScanInput;
using plan::ScanOutput;
using plan::Storage;

namespace {

// Rows are asked for ahead up to this size; beyond it the buffer grows as trips happen.
constexpr size_t kMaxReservedBytes = size_t{1} << 26;
constexpr size_t kFirstRows = 16;

// Sizes of a scan output without trips: what is known of its element, 0 for the rest.
Dims empty_dims(const Type& element) {
  Dims dims{0};
  if (element.has_shape) {
    for (const Dim& d : element.shape) dims.push_back(d.value_or(0));
  }
  return dims;
}

// Whether a value of this type may have these sizes.
bool fits(const Type& type, const Dims& dims) {
  if (!type.has_shape) return true;
  if (type.shape.size() != dims.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (type.shape[d].is_known() && !type.shape[d].is_known(dims[d])) return false;
  }
  return true;
}

// Rows of trips that are left out.
void clear_rows(std::byte* whole, const LoopPosition& at, size_t row_bytes) {
  const auto ran = static_cast<size_t>(at.trips), all = static_cast<size_t>(at.rows);
  if (ran < all && row_bytes > 0) std::memset(whole + ran * row_bytes, 0, (all - ran) * row_bytes);
}

}  // namespace

Status Context::count_trips(const Loop& loop, LoopPosition& at) {
  if (loop.is_scan) {
    at.trips = loop.known_trips;
    at.trips_known = true;
    for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
      const uint32_t s = loop.scan_inputs[i].whole;
      if (program_->slots[s].storage != Storage::kHandle) continue;
      const AnyValue& v = handles_[s];
      if (!v.is_tensor() || v.tensor().rank() < 1) {
        return error(Code::kRuntime, "scan input {} must be a tensor of rank 1 or more, found {}", i,
                     v.type().to_string());
      }
      const int64_t length = v.tensor().dims()[0];
      if (at.trips >= 0 && at.trips != length) return check_lengths(loop);
      at.trips = length;
    }
    at.rows = at.trips;
    if (loop.masked && at.trips > 1) at.trips = count_masked_trips(loop.scan_inputs[0], at.trips);
    return {};
  }
  at.trips = INT64_MAX;
  at.trips_known = loop.trip_count != plan::kNoSlot && loop.continues == plan::kNoSlot;
  if (loop.trip_count != plan::kNoSlot) {
    if (program_->slots[loop.trip_count].storage == Storage::kHandle) {
      const AnyValue& m = handles_[loop.trip_count];
      if (!m.is_tensor() || m.tensor().type() != ElementType::kInt64 || m.tensor().element_count() != 1) {
        return error(Code::kRuntime, "M must be one int64, found {}", m.type().to_string());
      }
    }
    at.trips = *static_cast<const int64_t*>(slots_[loop.trip_count]);
  }
  if (loop.condition != plan::kNoSlot) {
    bool condition = false;
    TREADLE_TRY(read_flag(loop.condition, "cond", condition));
    if (!condition) at.trips = 0;
  }
  at.trips = at.rows = std::max<int64_t>(at.trips, 0);
  return {};
}

// In the order of the inputs, as the first that differs is the one to name.
Status Context::check_lengths(const Loop& loop) const {
  int64_t length = -1;
  for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
    const uint32_t s = loop.scan_inputs[i].whole;
    const bool is_handle = program_->slots[s].storage == Storage::kHandle;
    if (is_handle && (!handles_[s].is_tensor() || handles_[s].tensor().rank() < 1)) continue;
    const int64_t own = is_handle ? handles_[s].tensor().dims()[0] : program_->slots[s].type.shape[0].value();
    if (length >= 0 && own != length) return unequal_lengths(i, own, length);
    length = own;
  }
  return {};
}

// The trips up to the last one whose mask is not all false in time; one at least, which tells what rows look like.
int64_t Context::count_masked_trips(const ScanInput& mask, int64_t length) const {
  const plan::Slot& slot = program_->slots[mask.whole];
  const bool* within = static_cast<const bool*>(slots_[mask.whole]);
  const int64_t count = slot.storage == Storage::kHandle ? handles_[mask.whole].tensor().element_count()
                                                         : element_count_unchecked(known_dims(slot.type.shape));
  int64_t last = count - 1;
  while (last > 0 && !within[last]) --last;
  return count > 0 ? last / (count / length) + 1 : 1;
}

Status Context::begin_states(const Loop& loop) {
  for (const LoopState& state : loop.states) {
    if (state.planned) {
      copy_in_pieces(slots_[state.in], slots_[state.initial], state.bytes);
      // Kernels may compute along what is behind it (see Planner::find_padded).
      const size_t behind = program_->slots[state.in].bytes - state.bytes;
      for (const uint32_t s : {state.in, state.out}) {
        if (behind > 0) std::memset(static_cast<std::byte*>(slots_[s]) + state.bytes, 0, behind);
      }
    } else {
      TREADLE_ASSIGN(AnyValue value, value_of(state.initial, program_->slots[state.initial].type));
      TREADLE_TRY(set_handle(state.in, std::move(value)));
    }
  }
  return {};
}

Status Context::begin_outputs(const Loop& loop, LoopPosition& at) {
  at.row_capacity = INT64_MAX;
  for (size_t i = 0; i < loop.scan_outputs.size(); ++i) {
    const ScanOutput& scan = loop.scan_outputs[i];
    ScanOutputState& state = at.outputs[i];
    state.dims.clear();
    state.type = ElementType::kUndefined;
    state.strings.clear();
    if (scan.row != plan::kNoSlot && !scan.whole_planned) {
      state.dims = known_dims(scan.element_type.shape);
      state.type = scan.element_type.element;
      state.element_bytes = scan.element_bytes;
    }
    if (!scan.whole_planned) continue;
    auto* row = static_cast<std::byte*>(slots_[scan.whole]);
    if (loop.masked) clear_rows(row, at, scan.element_bytes);
    if (scan.reverse && at.trips > 0) row += static_cast<size_t>(at.trips - 1) * scan.element_bytes;
    slots_[scan.row] = row;
  }
  return loop.step.grows && at.trips > 0 ? grow_rows(loop, at) : Status();
}

Status Context::grow(GrowBuffer& rows, size_t needed, size_t want) {
  const size_t have = rows.capacity();
  if (!account_->fits(want - have)) spare_.clear();
  if (!account_->fits(want - have)) {
    // All that is left, so that a limit is not approached row by row.
    want = std::min(want, have + account_->room());
    if (want < needed) return account_->refusal(needed - have, "a scan output");
  }
  ++allocations_;
  if (!rows.reserve(want, *account_)) return error(Code::kLimit, "no memory for {} bytes of scan output", want);
  return {};
}

// Memory for the row of the coming trip and more, for every output whose rows go to memory that grows.
Status Context::grow_rows(const Loop& loop, LoopPosition& at) {
  at.row_capacity = INT64_MAX;
  for (size_t i = 0; i < loop.scan_outputs.size(); ++i) {
    const ScanOutput& scan = loop.scan_outputs[i];
    if (scan.whole_planned || scan.row == plan::kNoSlot) continue;
    GrowBuffer& rows = at.outputs[i].rows;
    const size_t bytes = std::max<size_t>(scan.element_bytes, 1);
    const size_t needed = (static_cast<size_t>(at.trip) + 1) * bytes;
    if (needed > rows.capacity()) {
      size_t want = std::max(needed, at.trip == 0 ? kFirstRows * bytes : 2 * rows.capacity());
      size_t all = 0;
      if (at.trips_known && !__builtin_mul_overflow(static_cast<size_t>(at.rows), bytes, &all)) {
        want = all <= kMaxReservedBytes ? all : std::min(want, all);
      }
      TREADLE_TRY(grow(rows, needed, want));
    }
    slots_[scan.row] = rows.data() + static_cast<size_t>(at.trip) * scan.element_bytes;
    at.row_capacity = std::min(at.row_capacity, static_cast<int64_t>(rows.capacity() / bytes));
  }
  return {};
}

Status Context::set_elements(const Loop& loop, LoopPosition& at) {
  for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
    const ScanInput& scan = loop.scan_inputs[i];
    const int64_t row = scan.reverse ? at.trips - 1 - at.trip : at.trip;
    if (scan.planned) {
      if (program_->slots[scan.whole].storage == Storage::kHandle) {
        const Dims& dims = handles_[scan.whole].tensor().dims();
        const Shape& element = scan.element_type.shape;
        bool fits = dims.size() == element.size() + 1;
        for (size_t d = 0; fits && d < element.size(); ++d) fits = dims[d + 1] == element[d].value();
        if (!fits) {
          return error(Code::kInternal, "scan input {} was planned for elements of {}, found shape {}", i,
                       scan.element_type.to_string(), to_string(dims));
        }
      }
      slots_[scan.element] =
          static_cast<std::byte*>(slots_[scan.whole]) + row * static_cast<int64_t>(scan.element_bytes);
      continue;
    }
    const plan::Slot& slot = program_->slots[scan.whole];
    if (slot.storage != Storage::kHandle && slot.storage != Storage::kConstant) {
      return error(Code::kInternal, "scan input {} has elements of unknown size in planned memory", i);
    }
    const Tensor& whole = slot.storage == Storage::kConstant ? slot.constant : handles_[scan.whole].tensor();
    Dims dims = whole.dims();
    dims.erase(0);
    const auto stride = element_count_unchecked(dims) * static_cast<int64_t>(byte_width(whole.type()));
    Tensor element = Tensor::from_buffer(whole.type(), std::move(dims), whole.buffer(),
                                         static_cast<const std::byte*>(whole.raw()) + row * stride);
    TREADLE_TRY(set_handle(scan.element, AnyValue(std::move(element))));
  }
  return {};
}

Status Context::loop_begin(uint32_t index, bool& runs) {
  const Loop& loop = program_->loops[index];
  LoopPosition& at = loops_[index];
  at.trip = 0;
  TREADLE_TRY(count_trips(loop, at));
  TREADLE_TRY(begin_states(loop));
  TREADLE_TRY(begin_outputs(loop, at));
  at.all_trips = at.trips;
  runs = at.trips > 0;
  if (!runs) return {};
  TREADLE_TRY(count_trip(loop, budget_));
  TREADLE_TRY(set_elements(loop, at));
  if (loop.schedule.blocks.trips > 0) make_block(loop, at);
  if (loop.counter != plan::kNoSlot) *static_cast<int64_t*>(slots_[loop.counter]) = 0;
  at.active = true;
  begin_team(index);
  return {};
}

Status Context::loop_next(uint32_t index, bool& again) {
  const Loop& loop = program_->loops[index];
  LoopPosition& at = loops_[index];
  bool continues = true;
  if (loop.continues != plan::kNoSlot) TREADLE_TRY(read_flag(loop.continues, "the body's condition", continues));
  for (size_t i = 0; i < loop.scan_outputs.size(); ++i) {
    if (loop.scan_outputs[i].row == plan::kNoSlot) TREADLE_TRY(store_row(loop.scan_outputs[i], at.outputs[i], at));
  }
  TREADLE_TRY(move_handles(loop));
  plan::take_back_edge(loop, HandOn{slots_.data(), at});
  again = continues && at.trip < at.trips;
  if (!again) return {};
  TREADLE_TRY(count_trip(loop, budget_));
  if (at.trip >= at.row_capacity) TREADLE_TRY(grow_rows(loop, at));
  return set_elements(loop, at);
}

Status Context::store_row(const ScanOutput& scan, ScanOutputState& state, LoopPosition& at) {
  const Tensor* tensor = nullptr;
  const void* data = slots_[scan.element];
  Dims planned;
  if (!scan.element_planned) {
    const plan::Slot& slot = program_->slots[scan.element];
    if (slot.storage == Storage::kHandle && !handles_[scan.element].is_tensor()) {
      return error(Code::kRuntime, "a scan output's element must be a tensor, found {}",
                   handles_[scan.element].type().to_string());
    }
    tensor = slot.storage == Storage::kHandle ? &handles_[scan.element].tensor() : &slot.constant;
  }
  if (at.trip == 0) {
    state.dims = tensor ? tensor->dims() : known_dims(scan.element_type.shape);
    state.type = tensor ? tensor->type() : scan.element_type.element;
    state.element_bytes = tensor ? tensor->byte_size() : scan.element_bytes;
  } else if (tensor && !(tensor->dims() == state.dims && tensor->type() == state.type)) {
    return error(Code::kRuntime, "an element of a scan output has shape {}, in iteration 0 it had {}",
                 to_string(tensor->dims()), to_string(state.dims));
  }
  if (is_string(state.type)) {
    const auto values = tensor->span<String>();
    state.strings.insert(scan.reverse ? state.strings.begin() : state.strings.end(), values.begin(), values.end());
    return {};
  }
  const size_t needed = (static_cast<size_t>(at.trip) + 1) * state.element_bytes;
  if (needed > state.rows.capacity()) {
    size_t want = std::max(needed, 2 * state.rows.capacity());
    want = std::max(want, kFirstRows * state.element_bytes);
    if (at.trips_known) {
      size_t all = 0;
      if (!__builtin_mul_overflow(static_cast<size_t>(at.rows), state.element_bytes, &all)) {
        want = all <= kMaxReservedBytes || scan.reverse ? all : std::min(want, all);
      }
    }
    TREADLE_TRY(grow(state.rows, needed, want));
  }
  const auto row = static_cast<size_t>(scan.reverse ? at.trips - 1 - at.trip : at.trip);
  if (state.element_bytes > 0)
    copy_in_pieces(state.rows.data() + row * state.element_bytes, tensor ? tensor->raw() : data, state.element_bytes);
  return {};
}

Status Context::move_handles(const Loop& loop) {
  // One parallel move: every new state is taken before any is put in place.
  InlineVector<AnyValue, 4> next;
  for (size_t i = 0; i < loop.states.size(); ++i) {
    const LoopState& state = loop.states[i];
    if (state.planned) continue;
    if (state.grows) {
      next.push_back(handles_[state.out]);
      continue;
    }
    TREADLE_ASSIGN(AnyValue value, value_of(state.out, program_->slots[state.out].type));
    if (state.shape_is_fixed) {
      const AnyValue& old = handles_[state.in];
      if (!value.is_tensor() || !old.is_tensor() || !(value.tensor().dims() == old.tensor().dims()) ||
          value.tensor().type() != old.tensor().type()) {
        LoopPosition& at = loops_[static_cast<size_t>(&loop - program_->loops.data())];
        at.active = false;  // it is the loop that fails
        return changed_state(Code::kRuntime, i, at.trip, old.type(), value.type());
      }
    }
    next.push_back(std::move(value));
  }
  size_t k = 0;
  for (const LoopState& state : loop.states) {
    if (state.planned) continue;
    // The memory of the old state serves the node that makes the new one, if nobody else holds it.
    AnyValue old = std::move(handles_[state.in]);
    TREADLE_TRY(set_handle(state.in, std::move(next[k++])));
    if (state.grows) {
      layouts_[state.in] = layouts_[state.out];
      continue;
    }
    if (state.made_by_trip && program_->slots[state.out].storage == Storage::kHandle && state.out != state.in &&
        old.is_tensor()) {
      const bool is_state =
          std::any_of(loop.states.begin(), loop.states.end(), [&](const LoopState& s) { return s.in == state.out; });
      if (!is_state && old.tensor().exclusive()) handles_[state.out] = std::move(old);
    }
  }
  return {};
}

Status Context::finish_output(const ScanOutput& scan, ScanOutputState& state, LoopPosition& at, bool masked) {
  if (at.trip == 0) {
    ElementType type = scan.empty.element;
    if (type == ElementType::kUndefined) type = scan.element_type.element;
    const Dims dims = empty_dims(scan.empty);
    // Plans expect the sizes that rows have where there are any.
    misplanned_ = !fits(program_->slots[scan.whole].type, dims);
    if (misplanned_) return error(Code::kInternal, "no rows of sizes {} were planned for", to_string(dims));
    TREADLE_ASSIGN(Tensor empty, allocate(type == ElementType::kUndefined ? ElementType::kFloat : type, dims));
    return set_handle(scan.whole, AnyValue(std::move(empty)));
  }
  Dims dims = state.dims;
  const int64_t count = masked ? at.rows : at.trip;
  dims.insert(0, count);
  if (is_string(state.type)) {
    TREADLE_ASSIGN(Tensor whole, allocate(state.type, dims));
    std::move(state.strings.begin(), state.strings.end(), whole.mutable_data<String>());
    return set_handle(scan.whole, AnyValue(std::move(whole)));
  }
  const size_t bytes = static_cast<size_t>(count) * state.element_bytes;
  if (masked) {
    if (bytes > state.rows.capacity()) TREADLE_TRY(grow(state.rows, bytes, bytes));
    clear_rows(state.rows.data(), at, state.element_bytes);
  }
  BufferRef rows = state.rows.take(bytes);
  if (!rows) return error(Code::kLimit, "no memory for a scan output");
  return set_handle(scan.whole, AnyValue(Tensor::from_buffer(state.type, std::move(dims), std::move(rows))));
}

Status Context::loop_end(uint32_t index) {
  const Loop& loop = program_->loops[index];
  LoopPosition& at = loops_[index];
  at.active = false;
  end_team(index);
  for (const LoopState& state : loop.states) {
    if (state.final == plan::kNoSlot) continue;
    if (state.planned) {
      copy_in_pieces(slots_[state.final], slots_[state.in], state.bytes);
    } else {
      TREADLE_ASSIGN(AnyValue last, value_of(state.in, program_->slots[state.in].type));
      TREADLE_TRY(set_handle(state.final, std::move(last)));
    }
  }
  for (size_t i = 0; i < loop.scan_outputs.size(); ++i) {
    if (!loop.scan_outputs[i].whole_planned)
      TREADLE_TRY(finish_output(loop.scan_outputs[i], at.outputs[i], at, loop.masked));
  }
  return {};
}

}  // namespace treadle::run
