#pragma once
// The positions of loops, and the interpreter's work at their edges: begin, back edge, end. run/loop_runner.h runs the
// iterations in between.

#include <vector>

#include "plan/back_edge.h"
#include "plan/native.h"
#include "run/frame.h"
#include "run/iterations.h"
#include "run/polls.h"

namespace treadle::run {

struct ScanOutputState {
  GrowBuffer rows;
  Dims dims;  // of an element, from the first iteration on
  ElementType type = ElementType::kUndefined;
  size_t element_bytes = 0;
  Tensor texts;  // rows of texts, with spare rows
};

struct LoopPosition : plan::LoopCounters {
  int64_t rows = 0;            // rows of scan outputs; rows behind the last iteration are zeros
  int64_t all_iterations = 0;  // sum of `iterations` over all strips
  int64_t counted = 0;         // iterations before this one are in lost_ns, or were native code
  double lost_ns = 0;  // estimated loss from interpreting this loop and the loops inside it, whose code would be one
                       // piece of native code
  std::vector<ScanOutputState> outputs;
};

// Handlers of a back edge over planned memory. The caller has tested the condition of the body before.
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
    ++at.iteration;
    if (counter != plan::kNoSlot) *static_cast<int64_t*>(slots[counter]) = at.iteration;
  }
};

struct HandOnAndAsk : HandOn {
  bool continues = true;
  void ask(uint32_t s) { continues = *static_cast<const bool*>(slots[s]); }
};

// The back edge of a simple loop. False: the body's condition ends the loop.
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
  // Resets loops that were running when a run failed.
  void abandon();
  // Whether the last run met sizes that its plan is not made for.
  bool misplanned() const { return misplanned_; }
  // Iterations of each loop in this run, including loops that have not ended.
  std::vector<LoopCount> counts() const;

  LoopPosition& operator[](uint32_t loop) { return positions_[loop]; }
  const LoopPosition& operator[](uint32_t loop) const { return positions_[loop]; }
  // The positions as native code sees them: LoopCounters at a distance of sizeof(LoopPosition).
  std::byte* counters() { return reinterpret_cast<std::byte*>(static_cast<plan::LoopCounters*>(positions_.data())); }
  bool has_iteration(uint32_t loop) const {
    const LoopPosition& at = positions_[loop];
    return at.iteration < (program_.loops[loop].schedule.strips.iterations > 0 ? at.all_iterations : at.iterations);
  }

  // Begins a loop up to its first iteration, and counts that. `runs` is false if there are no iterations. The caller
  // makes the first strip of rows.
  Status begin(uint32_t index, bool& runs);
  // The back edge of any loop.
  Status next(uint32_t index, bool& again);
  Status end(uint32_t index);

  // Begins a loop that is a stage of a pipeline. No iteration is counted.
  Status begin_stage(uint32_t index);
  // Ends a stage: copies the final states, which lie in planned memory.
  void end_stage(uint32_t index);
  // Makes room for the row of the coming iteration in every output whose rows go to growing memory.
  Status grow_rows(uint32_t index);

 private:
  static void count(LoopPosition& at);
  Status count_iterations(const plan::Loop& loop, LoopPosition& at);
  Status count_scan_iterations(const plan::Loop& loop, LoopPosition& at);
  Status check_lengths(const plan::Loop& loop) const;  // compares lengths of scan inputs
  int64_t count_masked_iterations(const plan::ScanInput& mask, int64_t length) const;
  Status enter(uint32_t index);  // the part that begin() and begin_stage() share
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
  std::vector<bool> exchanges_;          // by loop: result of exchanges_handles()
  bool misplanned_ = false;
};

}  // namespace treadle::run
