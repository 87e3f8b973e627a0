#pragma once
// Everything that changes during a run: the arena, the table of slots, handles, inline caches, loop positions, limits.
// One per run in flight; pooled, so that caches stay warm.

#include <chrono>
#include <cstring>
#include <exception>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/in_pieces.h"
#include "base/memory_account.h"
#include "op/costs.h"
#include "op/resize.h"
#include "plan/back_edge.h"
#include "run/limits.h"
#include "run/native.h"
#include "run/options.h"
#include "run/pipelines.h"
#include "run/team.h"

namespace treadle::run {

// Most rows and states of small bodies are one or two elements.
inline void copy_bytes(void* to, const void* from, size_t bytes) {
  if (bytes == 4) {
    std::memcpy(to, from, 4);
  } else if (bytes == 8) {
    std::memcpy(to, from, 8);
  } else {
    copy_in_pieces(to, from, bytes);
  }
}

// Memory that grows without moving its contents by hand: rows of a scan output whose number is not known ahead.
class GrowBuffer {
 public:
  GrowBuffer() = default;
  GrowBuffer(const GrowBuffer&) = delete;
  GrowBuffer& operator=(const GrowBuffer&) = delete;
  GrowBuffer(GrowBuffer&& other) noexcept;
  ~GrowBuffer();

  std::byte* data() { return data_; }
  size_t capacity() const { return capacity_; }
  // At least `bytes`, contents kept, counted on `account`. False when memory cannot be had.
  bool reserve(size_t bytes, MemoryAccount& account);
  // Hands the memory over as a buffer of `bytes`, and is empty afterwards.
  BufferRef take(size_t bytes);

 private:
  void trim(size_t bytes);

  std::byte* data_ = nullptr;
  size_t capacity_ = 0;
  MemoryAccount* account_ = nullptr;  // counts `capacity_`
};

// One preparation of a guarded node, for the shapes (and the contents of shape inputs) it was made for.
struct Prepared {
  std::vector<Operand> in, out;
  std::vector<Tensor> contents;  // of shape inputs; undefined for the rest
  StateArena states;
  Kernel kernel;
  size_t scratch_bytes = 0;
};

// Where the elements of a handle lie that has room to grow (plan::Growth).
struct StrideLayout {
  Dims strides;      // in elements; none: row-major
  int64_t room = 0;  // along the grown axis
};

// What preparation works with; kept so that a miss of an inline cache asks for little memory.
struct PrepareScratch {
  std::vector<Type> types, out_types;
  std::vector<const Type*> type_pointers;
  std::vector<const Tensor*> values;
  std::vector<Tensor> tensors;
};

// What a guarded node has been prepared for, by a digest of the sizes. A loop whose values grow sees as many as it has
// trips, and sees them again in the next run.
struct InlineCache {
  static constexpr size_t kLeast = 4;  // entries that every node may have; all nodes together: kMostPrepared more
  std::unordered_map<uint64_t, std::unique_ptr<Prepared>> entries;
  std::vector<uint64_t> order;  // the oldest entry first
  // The one that follows the sizes it sees; there is one where the kernel can be resized.
  std::unique_ptr<Prepared> elastic;
  Prepared* last = nullptr;  // the one used last
};
inline constexpr size_t kMostPrepared = 2048;

struct ScanOutputState {
  GrowBuffer rows;
  Dims dims;  // of the element, from the first trip on
  ElementType type = ElementType::kUndefined;
  size_t element_bytes = 0;
  std::vector<String> strings;  // rows of a string tensor
};

struct LoopPosition : plan::LoopCounters {
  int64_t rows = 0;       // of scan outputs; those behind the last trip are zeros
  int64_t all_trips = 0;  // `trips` of all blocks of time
  std::vector<ScanOutputState> outputs;
};

// What a run may do before it looks at its limits.
struct Budget {
  int64_t units = 0;  // until the next poll
  int64_t trips = 0;  // of all loops so far, the ones begun included
};

class Context {
 public:
  explicit Context(std::shared_ptr<const plan::Program> program, std::shared_ptr<NativeLoops> native = nullptr,
                   int64_t native_trip = 0);

  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // Binds inputs and memory of outputs, runs, and collects outputs. `inputs` parallel to the program's; `outputs`, the
  // places of results, likewise, null where nobody wants one.
  // `since`: when the run's time began, if before now.
  Status run(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs, const RunOptions& options,
             Limits::Clock::time_point since = {});
  int64_t allocations() const { return allocations_; }
  // Whether the last run met sizes that its plan is not made for: another way of running it is right.
  bool misplanned() const { return misplanned_; }
  // Of the last run: the arena and what tensors of run-time size took at once.
  size_t peak_bytes() const { return program_->arena_bytes + account_->peak(); }

 private:
  Status run_program();
  // execute.cc: what an instruction does leaves `in` where the run goes on, or at the one that an error belongs to.
  Status execute();
  template <bool kProfiled>
  Status interpret();
  template <bool kProfiled>
  Status run_kernels(const plan::Instruction*& in);
  Status run_row(const plan::Instruction*& in);
  Status branch(const plan::Instruction*& in, const plan::Instruction* target);
  template <bool kProfiled>
  Status enter_loop(const plan::Instruction*& in);
  Status end_trip(const plan::Instruction*& in);
  template <bool kProfiled>
  Status end_simple_trip(const plan::Instruction*& in, const plan::Instruction* body);
  Status leave_loop(const plan::Instruction*& in);
  template <bool kProfiled>
  Status offer_pipeline(const plan::Instruction*& in);
  const plan::Instruction* target_of(const plan::Instruction& in) const { return program_->code.data() + in.target; }
  void copy(const plan::Copy& of) { copy_bytes(slots_[of.to], slots_[of.from], of.bytes); }
  // What a run begins with: its clock, its memory.
  Status begin_run(const RunOptions& options, Limits::Clock::time_point since);
  // In the first run, once its memory limit allows it.
  Status allocate_arena();
  Status bind(std::span<const AnyValue* const> inputs, std::span<AnyValue* const> outputs);
  Status bind_inputs(std::span<const AnyValue* const> inputs);
  Status collect(std::span<AnyValue* const> outputs);
  Status place_error(Status status, uint32_t pc) const;

  // native.cc: runs the trips that are left of a loop, whose next one has been counted; `failed`: where it failed.
  friend struct NativeHostFunctions;
  Status run_native(const NativeCode& code, Budget& budget, const plan::Instruction*& failed);
  // The code that takes over at this trip.
  const NativeCode* native_code(uint32_t loop) const {
    return native_ && loops_[loop].trip >= native_trip_ ? native_->code(loop) : nullptr;
  }

  // dynamic.cc
  Status run_dynamic(const plan::Instruction& in);  // kGuarded, kCompute, kMove, with what they release
  // Counts work whose sizes the plan did not know, by the bytes that it reads and writes, and looks at the limits when
  // it was much.
  Status charge(size_t bytes) {
    uncounted_ns_ += costs::kDynamicByteNs * static_cast<double>(bytes);
    if (uncounted_ns_ < static_cast<double>(plan::kPollUnits) * plan::kPollUnitNs) return {};
    uncounted_ns_ = 0;
    return limits_.check();
  }
  Status charge_operands(const plan::DynamicNode& node);
  Status run_guarded(const plan::DynamicNode& node, uint32_t index);
  Status run_prepared(const plan::DynamicNode& node, Prepared& prepared);
  Status run_compute(const plan::DynamicNode& node);
  // The preparation for the sizes at hand; made, where there is none.
  Result<Prepared*> prepared_for(const plan::DynamicNode& node, InlineCache& cache);
  uint64_t digest_of_sizes(const plan::DynamicNode& node) const;
  bool matches(const plan::DynamicNode& node, const Prepared& prepared) const;
  bool lies_as(uint32_t s, const Operand& operand) const;
  bool has_contents(const plan::DynamicNode& node, const Prepared& prepared) const;
  bool resize(const plan::DynamicNode& node, Prepared& prepared);
  Status need_scratch(size_t bytes);
  size_t scratch_bytes() const { return scratch_ ? scratch_->size() : 0; }
  // Tensors of earlier runs are counted no longer; scratch, which stays, is.
  void renew_account();
  std::unique_ptr<Prepared> room_in(InlineCache& cache);
  Status prepare(const plan::DynamicNode& node, Prepared& made);
  Status renew(uint32_t s, ElementType type, const Dims& dims);
  bool all_numeric_tensors(const plan::DynamicNode& node) const;
  // The value in slot `s`, which stands for `value`: shared where it is reference-counted, copied from planned memory.
  Result<AnyValue> value_of(uint32_t s, const Type& type);
  Status set_handle(uint32_t s, AnyValue value);
  const Dims& dims_of(uint32_t s, const ir::Value& value, Dims& storage) const;
  Result<Tensor> allocate(ElementType type, const Dims& dims);
  // Memory of the run's account, recycled or fresh; an error when a limit is hit, which `what` exceeded.
  Result<BufferRef> allocate_bytes(size_t bytes, const Dims& dims);
  Status check_memory(size_t more, const Dims& dims);
  BufferRef recycled(size_t bytes);
  // growing.cc: values that are appended to. False where the node is no such case.
  Result<bool> append(const plan::DynamicNode& node);
  // What memory that needs `bytes` is best made long, of which it has `have` already: twice as much while that may be
  // taken, else part of what is left.
  size_t with_room_to_grow(size_t bytes, size_t have);
  // Makes the memory of a handle's tensor, which ends with it, at least `bytes` long, where nobody else holds it.
  void grow_in_place(uint32_t s, size_t bytes);
  Status append_row_major(const plan::DynamicNode& node, Dims dims);
  Status append_spread(const plan::DynamicNode& node, size_t axis, Dims dims);
  // Memory with room for twice the elements that `dims` says, with those of `base` in it.
  Result<BufferRef> spread_out(const Tensor& base, const Dims* strides, size_t axis, const Dims& dims,
                               plan::Growth growth, StrideLayout& made);
  // Of a handle that is not row-major; null for any other.
  const Dims* strides_of(uint32_t s) const {
    return layouts_.empty() || layouts_[s].strides.empty() ? nullptr : &layouts_[s].strides;
  }
  // A row-major copy.
  Result<AnyValue> gathered(const Tensor& tensor, const Dims& strides);
  // Gives up handles after their last use. In a loop, small tensors stay: the next trip writes into their memory.
  void release(const std::vector<uint32_t>& slots, bool in_loop) {
    if (!slots.empty()) release_handles(slots, in_loop);
  }
  void release_handles(const std::vector<uint32_t>& slots, bool in_loop);

  uint32_t point_at_row(const plan::Row& row) {
    void** const slots = slots_.data();
    const int64_t index = row.wide ? *static_cast<const int64_t*>(slots[row.index])
                                   : int64_t{*static_cast<const int32_t*>(slots[row.index])};
    const int64_t i = index < 0 ? index + row.count : index;
    if (i < 0 || i >= row.count) {
      return fail(KernelError::kIndexOutOfRange, index, row.count);
    }
    slots[row.to] = static_cast<std::byte*>(slots[row.from]) + static_cast<size_t>(i) * row.bytes;
    return 0;
  }

  // loops.cc
  Status loop_begin(uint32_t index, bool& runs);
  Status loop_next(uint32_t index, bool& again);
  Status move_handles(const plan::Loop& loop);
  Status loop_end(uint32_t index);

  // trips.cc: the trips that are left of a loop whose next one has been counted, as native code, as a chain or straight
  // through the body; `in` is behind them then. Where there is no such way, nothing happens.
  Status run_trips(uint32_t index, Budget& budget, const plan::Instruction*& in);
  Status ask_for_native(uint32_t index, const plan::Instruction*& in);
  int64_t granted(uint32_t index, const Budget& budget) const;
  Status run_bodies(const plan::Loop& loop, LoopPosition& at, Budget& budget, int64_t trips, bool& continues,
                    const plan::Instruction*& failed);
  bool has_trip(uint32_t index) const {
    const LoopPosition& at = loops_[index];
    return at.trip < (program_->loops[index].schedule.blocks.trips > 0 ? at.all_trips : at.trips);
  }
  // Counts the next trip, and sees to its block and to room for its rows.
  Status next_trip(uint32_t index, Budget& budget);
  // The rows for the coming block of trips (plan/strip_mining.h), with which the loop's trips end.
  void make_block(const plan::Loop& loop, LoopPosition& at);
  // The rows from trip `first` on; `is_rest`: of the last block.
  uint32_t run_rows(const plan::RowKernel& rows, int64_t first, bool is_rest) const;
  // What a back edge does with planned memory; the body's condition was asked before.
  struct HandOn {
    void** slots;
    LoopPosition& at;
    void ask(uint32_t) {}
    void put_row(const plan::LoopStep::Row& row) { copy_bytes(slots[row.to], slots[row.from], row.bytes); }
    void exchange(const plan::LoopStep::Swap& swap) { std::swap(slots[swap.in], slots[swap.out]); }
    void advance(const plan::LoopStep::Advance& pointer) {
      slots[pointer.slot] = static_cast<std::byte*>(slots[pointer.slot]) + pointer.stride;
    }
    void count(uint32_t counter) {
      ++at.trip;
      if (counter != plan::kNoSlot) *static_cast<int64_t*>(slots[counter]) = at.trip;
    }
  };
  struct HandOnAndAsk : HandOn {
    bool continues = true;
    void ask(uint32_t s) { continues = *static_cast<const bool*>(slots[s]); }
  };
  // The back edge of a simple loop. False: the body wants no further trip.
  bool step(const plan::Loop& loop, LoopPosition& at) {
    HandOnAndAsk edge{{slots_.data(), at}};
    plan::take_back_edge(loop, edge);
    return edge.continues;
  }
  Status begin_states(const plan::Loop& loop);
  Status count_trips(const plan::Loop& loop, LoopPosition& at);
  Status check_lengths(const plan::Loop& loop) const;  // of scan inputs
  int64_t count_masked_trips(const plan::ScanInput& mask, int64_t length) const;
  Status begin_outputs(const plan::Loop& loop, LoopPosition& at);
  Status grow_rows(const plan::Loop& loop, LoopPosition& at);
  Status set_elements(const plan::Loop& loop, LoopPosition& at);
  // Room for `needed` bytes of rows, better for `want`.
  Status grow(GrowBuffer& rows, size_t needed, size_t want);
  Status store_row(const plan::ScanOutput& scan, ScanOutputState& state, LoopPosition& at);
  Status finish_output(const plan::ScanOutput& scan, ScanOutputState& state, LoopPosition& at, bool masked);
  Status read_flag(uint32_t s, const char* what, bool& value) const;

  // pipelines.cc: all of a pipeline, `done`, unless it is better left to its instructions, which find what was wrong.
  Status run_pipeline(uint32_t index, bool& done);
  void end_pipeline(uint32_t index);
  void work_on_pipeline(uint32_t index, int worker);
  void take_blocks(uint32_t index, int worker);
  bool run_aside(const std::vector<uint32_t>& instructions);
  bool run_block(const plan::Pipeline& pipeline, size_t stage, int64_t block);
  bool run_trips_until(uint32_t loop, int64_t end);

  // Before each trip but those that a poll has granted ahead: limits, the cancel flag, signals, time.
  Status poll();
  // A loop whose steps may be shared among threads; between the two, each poll measures what it takes.
  void begin_team(uint32_t loop);
  void end_team(uint32_t loop);
  void measure_team();
  Status count_trip(const plan::Loop& loop, Budget& budget) {
    ++budget.trips;
    return (budget.units -= loop.schedule.weight) < 0 ? poll() : Status();
  }

  std::shared_ptr<const plan::Program> program_;
  std::shared_ptr<NativeLoops> native_;  // null: no native code
  int64_t native_trip_ = 0;
  // What has ended native code: an error, or what was thrown.
  Status native_status_;
  std::exception_ptr native_failure_;
  BufferRef arena_;  // none before the first run
  std::vector<void*> slots_;
  std::vector<void*> first_slots_;      // what a run begins with: addresses in the arena and of constants
  std::vector<AnyValue> handles_;       // by slot; used for kHandle only
  std::vector<uint32_t> handle_slots_;  // those
  std::vector<StrideLayout> layouts_;   // by slot; empty where nothing grows
  std::vector<AnyValue> unwanted_;      // by output: memory of those that a run writes though nobody asked for them
  std::vector<InlineCache> caches_;
  size_t prepared_ = 0;  // entries of all caches
  BufferRef scratch_;    // of guarded nodes, which run one after the other; counted on `account_`
  PrepareScratch prepare_;
  std::vector<LoopPosition> loops_;
  const RunOptions* options_ = nullptr;
  RunLimits limits_;
  Budget budget_;
  double uncounted_ns_ = 0;        // of work that no weight of a loop counts, since limits were looked at
  std::vector<TeamTrial> trials_;  // by loop
  std::vector<std::unique_ptr<PipelineRun>> pipelines_;
  uint32_t team_loop_ = UINT32_MAX;
  int64_t team_units_ = 0;  // of the stretch that began at team_since_; 0: none did
  std::chrono::steady_clock::time_point team_since_;
  int64_t allocations_ = 0;
  bool misplanned_ = false;
  std::shared_ptr<MemoryAccount> account_ = MemoryAccount::make();
  std::vector<BufferRef> spare_;  // large memory given up in a loop, for what is made next
};

}  // namespace treadle::run
