#pragma once
// Where loops stand, and what happens at their edges: a loop begins, its back edge, and its end. How the trips between
// run is in run/trips.h.

#include <vector>

#include "plan/back_edge.h"
#include "plan/native.h"
#include "run/frame.h"
#include "run/iterations.h"
#include "run/polls.h"

namespace treadle::run {

struct ScanOutputState {
  GrowBuffer rows;
  Dims dims;  // of the element, from the first trip on
  ElementType type = ElementType::kUndefined;
  size_t element_bytes = 0;
  Tensor texts;  // rows of texts, and room for more
};

struct LoopPosition : plan::LoopCounters {
  int64_t rows = 0;       // of scan outputs; those behind the last trip are zeros
  int64_t all_trips = 0;  // `trips` of all blocks of time
  int64_t counted = 0;    // trips up to here are in lost_ns, or were native code
  double lost_ns = 0;     // by interpreting this loop and those inside, where native code holds them together
  std::vector<ScanOutputState> outputs;
};

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
inline bool take_simple_edge(const plan::Loop& loop, LoopPosition& at, void** slots) {
  HandOnAndAsk edge{{slots, at}};
  plan::take_back_edge(loop, edge);
  return edge.continues;
}

class Loops {
 public:
  // All must outlive the object.
  Loops(const plan::Program& program, Frame& frame, RunMemory& memory, Polls& polls);
  Loops(const Loops&) = delete;
  Loops& operator=(const Loops&) = delete;

  void begin_run();
  // A run has failed: what loops were in the middle of is given up.
  void abandon();
  // Whether the last run met sizes that its plan is not made for.
  bool misplanned() const { return misplanned_; }
  // What loops have made in this run, those included that are in the middle of it.
  std::vector<LoopCount> counts() const;

  LoopPosition& operator[](uint32_t loop) { return positions_[loop]; }
  const LoopPosition& operator[](uint32_t loop) const { return positions_[loop]; }
  // As native code sees them: LoopCounters, sizeof(LoopPosition) apart.
  std::byte* counters() { return reinterpret_cast<std::byte*>(static_cast<plan::LoopCounters*>(positions_.data())); }
  bool has_trip(uint32_t loop) const {
    const LoopPosition& at = positions_[loop];
    return at.trip < (program_.loops[loop].schedule.blocks.trips > 0 ? at.all_trips : at.trips);
  }

  // Up to the first trip, which is counted; not `runs`: there is none. The first block of rows is the caller's to make.
  Status begin(uint32_t index, bool& runs);
  // The back edge of any loop.
  Status next(uint32_t index, bool& again);
  Status end(uint32_t index);

  // The beginning of a loop that is a stage of a pipeline: no trip is counted.
  Status begin_stage(uint32_t index);
  // Its end: copies the final states, which are planned.
  void end_stage(uint32_t index);
  // Memory for the row of the coming trip and more, for every output whose rows go to memory that grows.
  Status grow_rows(uint32_t index);

 private:
  static void count(LoopPosition& at);
  Status count_trips(const plan::Loop& loop, LoopPosition& at);
  Status count_scan_trips(const plan::Loop& loop, LoopPosition& at);
  Status check_lengths(const plan::Loop& loop) const;  // of scan inputs
  int64_t count_masked_trips(const plan::ScanInput& mask, int64_t length) const;
  Status enter(uint32_t index);  // what every beginning has in common
  Status begin_states(const plan::Loop& loop);
  Status begin_outputs(uint32_t index);
  Status set_elements(const plan::Loop& loop, const LoopPosition& at);
  Status point_at_element(const plan::ScanInput& scan, size_t i, int64_t row);
  Status take_element(const plan::ScanInput& scan, size_t i, int64_t row);
  bool exchanges_handles(const plan::Loop& loop) const;
  Status move_handles(uint32_t index);
  Status check_state(uint32_t index, size_t state, const AnyValue& next);
  Status store_row(const plan::ScanOutput& scan, ScanOutputState& state, const LoopPosition& at);
  Status store_texts(const Tensor& row, size_t at_row, bool whole, ScanOutputState& state, const LoopPosition& at);
  Status finish_output(const plan::ScanOutput& scan, ScanOutputState& state, const LoopPosition& at, bool masked);
  Status finish_empty(const plan::ScanOutput& scan);

  const plan::Program& program_;
  Frame& frame_;
  RunMemory& memory_;
  Polls& polls_;
  std::vector<LoopPosition> positions_;  // by loop
  std::vector<bool> exchanges_;          // by loop: exchanges_handles
  bool misplanned_ = false;
};

}  // namespace treadle::run
