#include "run/loops.h"

#include <algorithm>
#include <cstring>

#include "base/in_pieces.h"
#include "op/loop_signature.h"

namespace treadle::run {

using plan::Loop;
using plan::LoopState;
using plan::ScanInput;
using plan::ScanOutput;
using plan::Storage;

namespace {

// Rows of a known number of iterations are reserved at once up to this size. Above it the buffer grows with the
// iterations.
constexpr size_t kMaxReservedBytes = size_t{1} << 26;
constexpr size_t kFirstRows = 16;

// Sizes of a scan output of a loop without iterations: known sizes of its element, and 0 for unknown ones.
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

// Zeroes the rows of iterations that a mask leaves out.
void clear_rows(std::byte* whole, const LoopPosition& at, size_t row_bytes) {
  const auto ran = static_cast<size_t>(at.iterations), all = static_cast<size_t>(at.rows);
  if (ran < all && row_bytes > 0) std::memset(whole + ran * row_bytes, 0, (all - ran) * row_bytes);
}

}  // namespace

Loops::Loops(const plan::Program& program, Frame& frame, RunMemory& memory, Polls& polls)
    : program_(program), frame_(frame), memory_(memory), polls_(polls), positions_(program.loops.size()) {
  for (const Loop& loop : program.loops) exchanges_.push_back(exchanges_handles(loop));
  for (size_t i = 0; i < positions_.size(); ++i) positions_[i].outputs.resize(program.loops[i].scan_outputs.size());
}

void Loops::begin_run() {
  for (LoopPosition& at : positions_) {
    at.active = false;
    at.times_ended = at.iterations_ended = 0;
  }
  misplanned_ = false;
}

std::vector<LoopCount> Loops::counts() const {
  std::vector<LoopCount> counts;
  for (const LoopPosition& at : positions_) {
    const bool runs = at.active;
    counts.push_back({at.times_ended + (runs ? 1 : 0), at.iterations_ended + (runs ? at.iteration : 0)});
  }
  return counts;
}

// Adds the iterations of a loop that has ended to its counts.
void Loops::count(LoopPosition& at) {
  ++at.times_ended;
  at.iterations_ended += at.iteration;
}

void Loops::abandon() {
  for (LoopPosition& at : positions_) {
    const size_t count = at.outputs.size();
    at.outputs.clear();
    at.outputs.resize(count);
  }
}

// --- a loop begins ---------------------------------------------------------------------------------------------------

Status Loops::begin(uint32_t index, bool& runs) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = positions_[index];
  TREADLE_TRY(enter(index));
  at.all_iterations = at.iterations;
  polls_.progress().begin(loop, at);
  runs = at.iterations > 0;
  if (!runs) return {};
  TREADLE_TRY(polls_.count_iteration(loop.schedule.weight, polls_.budget()));
  TREADLE_TRY(set_elements(loop, at));
  if (loop.counter != plan::kNoSlot) *static_cast<int64_t*>(frame_.address(loop.counter)) = 0;
  at.active = true;
  polls_.teams().begin(index);
  return {};
}

Status Loops::begin_stage(uint32_t index) {
  TREADLE_TRY(enter(index));
  return set_elements(program_.loops[index], positions_[index]);
}

Status Loops::enter(uint32_t index) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = positions_[index];
  at.iteration = at.counted = 0;
  TREADLE_TRY(count_iterations(loop, at));
  TREADLE_TRY(begin_states(loop));
  return begin_outputs(index);
}

Status Loops::begin_states(const Loop& loop) {
  void** const slots = frame_.slots();
  for (const LoopState& state : loop.states) {
    if (!state.planned) {
      TREADLE_ASSIGN(AnyValue value, frame_.value_of(state.initial, program_.slots[state.initial].type));
      TREADLE_TRY(frame_.set_handle(state.in, std::move(value)));
      continue;
    }
    copy_bytes(slots[state.in], slots[state.initial], state.bytes);
    // Kernels may compute on the padding behind a state (see Planner::find_padded).
    const size_t behind = program_.slots[state.in].bytes - state.bytes;
    for (const uint32_t s : {state.in, state.out}) {
      if (behind > 0) std::memset(static_cast<std::byte*>(slots[s]) + state.bytes, 0, behind);
    }
  }
  return {};
}

Status Loops::begin_outputs(uint32_t index) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = positions_[index];
  at.row_capacity = INT64_MAX;
  for (size_t i = 0; i < loop.scan_outputs.size(); ++i) {
    const ScanOutput& scan = loop.scan_outputs[i];
    ScanOutputState& state = at.outputs[i];
    state.dims.clear();
    state.type = ElementType::kUndefined;
    state.texts = {};
    if (scan.row != plan::kNoSlot && !scan.whole_planned) {
      state.dims = known_dims(scan.element_type.shape);
      state.type = scan.element_type.element;
      state.element_bytes = scan.element_bytes;
    }
    if (!scan.whole_planned) continue;
    auto* row = static_cast<std::byte*>(frame_.address(scan.whole));
    if (loop.masked) clear_rows(row, at, scan.element_bytes);
    if (scan.reverse && at.iterations > 0) row += static_cast<size_t>(at.iterations - 1) * scan.element_bytes;
    frame_.point(scan.row, row);
  }
  return loop.step.grows && at.iterations > 0 ? grow_rows(index) : Status();
}

// --- from iteration to iteration
// -----------------------------------------------------------------------------------------------

Status Loops::grow_rows(uint32_t index) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = positions_[index];
  at.row_capacity = INT64_MAX;
  for (size_t i = 0; i < loop.scan_outputs.size(); ++i) {
    const ScanOutput& scan = loop.scan_outputs[i];
    if (scan.whole_planned || scan.row == plan::kNoSlot) continue;
    GrowBuffer& rows = at.outputs[i].rows;
    const size_t bytes = std::max<size_t>(scan.element_bytes, 1);
    const size_t needed = (static_cast<size_t>(at.iteration) + 1) * bytes;
    if (needed > rows.capacity()) {
      size_t want = std::max(needed, at.iteration == 0 ? kFirstRows * bytes : 2 * rows.capacity());
      size_t all = 0;
      if (at.iterations_known && !__builtin_mul_overflow(static_cast<size_t>(at.rows), bytes, &all)) {
        want = all <= kMaxReservedBytes ? all : std::min(want, all);
      }
      TREADLE_TRY(memory_.grow(rows, needed, want));
    }
    frame_.point(scan.row, rows.data() + static_cast<size_t>(at.iteration) * scan.element_bytes);
    at.row_capacity = std::min(at.row_capacity, static_cast<int64_t>(rows.capacity() / bytes));
  }
  return {};
}

Status Loops::set_elements(const Loop& loop, const LoopPosition& at) {
  for (size_t i = 0; i < loop.scan_inputs.size(); ++i) {
    const ScanInput& scan = loop.scan_inputs[i];
    const int64_t row = scan.reverse ? at.iterations - 1 - at.iteration : at.iteration;
    TREADLE_TRY(scan.planned ? point_at_element(scan, i, row) : take_element(scan, i, row));
  }
  return {};
}

Status Loops::point_at_element(const ScanInput& scan, size_t i, int64_t row) {
  if (frame_.is_handle(scan.whole)) {
    const Dims& dims = frame_.handle(scan.whole).tensor().dims();
    const Shape& element = scan.element_type.shape;
    bool fits = dims.size() == element.size() + 1;
    for (size_t d = 0; fits && d < element.size(); ++d) fits = dims[d + 1] == element[d].value();
    if (!fits) {
      return error(Code::kInternal, "scan input {} was planned for elements of {}, found shape {}", i,
                   scan.element_type.to_string(), to_string(dims));
    }
  }
  frame_.point(scan.element,
               static_cast<std::byte*>(frame_.address(scan.whole)) + row * static_cast<int64_t>(scan.element_bytes));
  return {};
}

// Makes a tensor of one element, which shares the memory of the whole input.
Status Loops::take_element(const ScanInput& scan, size_t i, int64_t row) {
  const plan::Slot& slot = program_.slots[scan.whole];
  const bool is_constant = slot.storage == Storage::kConstant;
  if (!is_constant && !frame_.is_handle(scan.whole)) {
    return error(Code::kInternal, "scan input {} has elements of unknown size in planned memory", i);
  }
  const Tensor& whole = is_constant ? slot.constant : frame_.handle(scan.whole).tensor();
  Dims dims = whole.dims();
  dims.erase(0);
  const auto stride = element_count_unchecked(dims) * static_cast<int64_t>(byte_width(whole.type()));
  Tensor element = Tensor::from_buffer(whole.type(), std::move(dims), whole.buffer(),
                                       static_cast<const std::byte*>(whole.raw()) + row * stride);
  return frame_.set_handle(scan.element, AnyValue(std::move(element)));
}

Status Loops::next(uint32_t index, bool& again) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = positions_[index];
  bool continues = true;
  if (loop.continues != plan::kNoSlot) {
    TREADLE_TRY(frame_.read_flag(loop.continues, "the body's condition", continues));
  }
  for (size_t i = 0; i < loop.scan_outputs.size(); ++i) {
    if (loop.scan_outputs[i].row == plan::kNoSlot) TREADLE_TRY(store_row(loop.scan_outputs[i], at.outputs[i], at));
  }
  TREADLE_TRY(move_handles(index));
  plan::take_back_edge(loop, HandOn{frame_.slots(), at});
  again = continues && at.iteration < at.iterations;
  if (!again) return {};
  TREADLE_TRY(polls_.count_iteration(loop.schedule.weight, polls_.budget()));
  if (at.iteration >= at.row_capacity) TREADLE_TRY(grow_rows(index));
  return set_elements(loop, at);
}

Status Loops::store_row(const ScanOutput& scan, ScanOutputState& state, const LoopPosition& at) {
  const Tensor* tensor = nullptr;
  if (!scan.element_planned) {
    const bool is_handle = frame_.is_handle(scan.element);
    if (is_handle && !frame_.handle(scan.element).is_tensor()) {
      return error(Code::kRuntime, "a scan output's element must be a tensor, found {}",
                   frame_.handle(scan.element).type().to_string());
    }
    tensor = is_handle ? &frame_.handle(scan.element).tensor() : &program_.slots[scan.element].constant;
  }
  if (at.iteration == 0) {
    state.dims = tensor ? tensor->dims() : known_dims(scan.element_type.shape);
    state.type = tensor ? tensor->type() : scan.element_type.element;
    state.element_bytes = tensor ? tensor->byte_size() : scan.element_bytes;
  } else if (tensor && !(tensor->dims() == state.dims && tensor->type() == state.type)) {
    return error(Code::kRuntime, "an element of a scan output has shape {}, in iteration 0 it had {}",
                 to_string(tensor->dims()), to_string(state.dims));
  }
  const auto row = static_cast<size_t>(scan.reverse ? at.iterations - 1 - at.iteration : at.iteration);
  if (is_string(state.type)) return store_texts(*tensor, row, scan.reverse, state, at);
  const size_t needed = (static_cast<size_t>(at.iteration) + 1) * state.element_bytes;
  if (needed > state.rows.capacity()) {
    size_t want = std::max({needed, 2 * state.rows.capacity(), kFirstRows * state.element_bytes});
    size_t all = 0;
    if (at.iterations_known && !__builtin_mul_overflow(static_cast<size_t>(at.rows), state.element_bytes, &all)) {
      want = all <= kMaxReservedBytes || scan.reverse ? all : std::min(want, all);
    }
    TREADLE_TRY(memory_.grow(state.rows, needed, want));
  }
  if (state.element_bytes > 0) {
    copy_in_pieces(state.rows.data() + row * state.element_bytes, tensor ? tensor->raw() : frame_.address(scan.element),
                   state.element_bytes);
  }
  return {};
}

// `whole`: rows are stored from the last one on, so that the buffer needs all rows from the beginning.
Status Loops::store_texts(const Tensor& row, size_t at_row, bool whole, ScanOutputState& state,
                          const LoopPosition& at) {
  const auto count = static_cast<size_t>(row.element_count());
  const int64_t capacity = state.texts.defined() ? state.texts.dims()[0] : 0;
  if (at.iteration >= capacity) {
    int64_t rows = std::max<int64_t>(2 * capacity, kFirstRows);
    if (at.iterations_known) {
      const bool reserves = static_cast<size_t>(at.rows) <= kMaxReservedBytes / std::max<size_t>(row.byte_size(), 1);
      rows = whole || reserves ? at.rows : std::min(rows, at.rows);
    }
    TREADLE_ASSIGN(Tensor texts, memory_.allocate(ElementType::kString, {rows, row.element_count()}));
    auto* const old = state.texts.mutable_data<String>();
    std::move(old, old + state.texts.element_count(), texts.mutable_data<String>());
    state.texts = std::move(texts);
  }
  const MemoryScope counted(memory_.account());
  return within_memory(
      [&] {
        std::copy_n(row.data<String>(), count, state.texts.mutable_data<String>() + at_row * count);
        return Status();
      },
      "a scan output");
}

// A scan's state has to keep its type and sizes.
Status Loops::check_state(uint32_t index, size_t state, const AnyValue& next) {
  const AnyValue& old = frame_.handle(program_.loops[index].states[state].in);
  if (next.is_tensor() && old.is_tensor() && next.tensor().dims() == old.tensor().dims() &&
      next.tensor().type() == old.tensor().type()) {
    return {};
  }
  LoopPosition& at = positions_[index];
  at.active = false;  // the error belongs to the loop, not to an iteration
  return changed_state(Code::kRuntime, state, at.iteration, old.type(), next.type());
}

// Whether every state of run-time size is a value of its own that each iteration makes anew. Then a state and its
// successor swap values.
bool Loops::exchanges_handles(const Loop& loop) const {
  const auto is_taken = [&](const LoopState& state) {
    return std::any_of(loop.states.begin(), loop.states.end(), [&](const LoopState& other) {
      return other.in == state.out || (&other != &state && other.out == state.out);
    });
  };
  const auto keeps_sizes = [&](const LoopState& state) {
    const Type &in = program_.slots[state.in].type, &out = program_.slots[state.out].type;
    return frame_.is_fixed(state.in) && frame_.is_fixed(state.out) && in.element == out.element &&
           same(in.shape, out.shape);
  };
  const auto has_any_sizes = [&](const LoopState& state) {
    return !state.shape_is_fixed && !frame_.is_fixed(state.in);
  };
  return !frame_.has_layouts() && std::all_of(loop.states.begin(), loop.states.end(), [&](const LoopState& state) {
    return state.planned || (state.made_by_iteration && !state.grows && frame_.is_handle(state.out) &&
                             !is_taken(state) && (keeps_sizes(state) || has_any_sizes(state)));
  });
}

Status Loops::move_handles(uint32_t index) {
  const Loop& loop = program_.loops[index];
  if (exchanges_[index]) {
    for (const LoopState& state : loop.states) {
      if (!state.planned) frame_.exchange(state.in, state.out);
    }
    return {};
  }
  // One parallel move: all new states are read before any is written.
  InlineVector<AnyValue, 4> next;
  for (size_t i = 0; i < loop.states.size(); ++i) {
    const LoopState& state = loop.states[i];
    if (state.planned) continue;
    if (state.grows) {
      next.push_back(frame_.handle(state.out));
      continue;
    }
    TREADLE_ASSIGN(AnyValue value, frame_.value_of(state.out, program_.slots[state.out].type));
    if (state.shape_is_fixed) TREADLE_TRY(check_state(index, i, value));
    next.push_back(std::move(value));
  }
  size_t k = 0;
  for (const LoopState& state : loop.states) {
    if (state.planned) continue;
    // The old state's memory serves the node that makes the new state, if nothing else refers to it.
    AnyValue old = std::move(frame_.handle(state.in));
    TREADLE_TRY(frame_.set_handle(state.in, std::move(next[k++])));
    if (state.grows) {
      frame_.set_layout(state.in, frame_.layout(state.out));
      continue;
    }
    if (state.made_by_iteration && frame_.is_handle(state.out) && state.out != state.in && old.is_tensor()) {
      const bool is_state =
          std::any_of(loop.states.begin(), loop.states.end(), [&](const LoopState& s) { return s.in == state.out; });
      if (!is_state && old.tensor().exclusive()) frame_.handle(state.out) = std::move(old);
    }
  }
  return {};
}

// --- a loop ends -----------------------------------------------------------------------------------------------------

Status Loops::end(uint32_t index) {
  const Loop& loop = program_.loops[index];
  LoopPosition& at = positions_[index];
  at.active = false;
  count(at);
  polls_.progress().end(loop, at);
  polls_.teams().end(index);
  void** const slots = frame_.slots();
  for (const LoopState& state : loop.states) {
    if (state.final == plan::kNoSlot) continue;
    if (state.planned) {
      copy_bytes(slots[state.final], slots[state.in], state.bytes);
    } else {
      TREADLE_ASSIGN(AnyValue last, frame_.value_of(state.in, program_.slots[state.in].type));
      TREADLE_TRY(frame_.set_handle(state.final, std::move(last)));
    }
  }
  for (size_t i = 0; i < loop.scan_outputs.size(); ++i) {
    if (loop.scan_outputs[i].whole_planned) continue;
    TREADLE_TRY(finish_output(loop.scan_outputs[i], at.outputs[i], at, loop.masked));
  }
  return {};
}

void Loops::end_stage(uint32_t index) {
  count(positions_[index]);
  for (const LoopState& state : program_.loops[index].states) {
    if (state.final != plan::kNoSlot) {
      std::memcpy(frame_.address(state.final), frame_.address(state.in), state.bytes);
    }
  }
}

// Makes the scan output of a loop without iterations.
Status Loops::finish_empty(const ScanOutput& scan) {
  ElementType type = scan.empty.element;
  if (type == ElementType::kUndefined) type = scan.element_type.element;
  const Dims dims = empty_dims(scan.empty);
  // Instructions behind the loop were planned for the sizes that rows have when there are iterations.
  misplanned_ = !fits(program_.slots[scan.whole].type, dims);
  if (misplanned_) return error(Code::kInternal, "no rows of sizes {} were planned for", to_string(dims));
  TREADLE_ASSIGN(Tensor empty, memory_.allocate(type == ElementType::kUndefined ? ElementType::kFloat : type, dims));
  return frame_.set_handle(scan.whole, AnyValue(std::move(empty)));
}

Status Loops::finish_output(const ScanOutput& scan, ScanOutputState& state, const LoopPosition& at, bool masked) {
  if (at.iteration == 0) return finish_empty(scan);
  Dims dims = state.dims;
  const int64_t count = masked ? at.rows : at.iteration;
  dims.insert(0, count);
  if (is_string(state.type)) {
    return frame_.set_handle(scan.whole, AnyValue(Tensor::from_buffer(state.type, dims, state.texts.buffer())));
  }
  const size_t bytes = static_cast<size_t>(count) * state.element_bytes;
  if (masked) {
    if (bytes > state.rows.capacity()) TREADLE_TRY(memory_.grow(state.rows, bytes, bytes));
    clear_rows(state.rows.data(), at, state.element_bytes);
  }
  BufferRef rows = state.rows.take(bytes);
  if (!rows) return error(Code::kLimit, "no memory for a scan output");
  return frame_.set_handle(scan.whole, AnyValue(Tensor::from_buffer(state.type, std::move(dims), std::move(rows))));
}

}  // namespace treadle::run
