#pragma once
// The trips of a loop whose values are planned, in whichever way the loop runs, and what happens between two trips. A
// loop of the program, one in blocks of time (plan/strip_mining.h) and a stage of a pipeline (plan/pipelines.h) all
// come here; bodies that branch, or whose values are looked up, take turns with the interpreter (execute.cc).

#include <exception>
#include <memory>

#include "run/dynamic.h"
#include "run/loops.h"
#include "run/native.h"

namespace treadle::run {

class Trips {
 public:
  // `native`: null for no native code. `native_trip`: the first trip of any loop that may be native code. All must
  // outlive the object.
  Trips(const plan::Program& program, Frame& frame, Polls& polls, Loops& loops, DynamicNodes& dynamic,
        std::shared_ptr<NativeLoops> native, int64_t native_trip);
  Trips(const Trips&) = delete;
  Trips& operator=(const Trips&) = delete;

  void begin_run(Profile* profile) { profile_ = profile; }
  NativeLoops* native() const { return native_.get(); }

  // A loop up to its first trip, with the rows of that; not `runs`: there is none.
  Status begin_loop(uint32_t index, bool& runs);
  // A loop whose first trip has been counted is about to run: native code may be made for it. Errors: native code is
  // required and there is none; `in` is then the instruction to name.
  Status ask_for_native(uint32_t index, const plan::Instruction*& in);
  // Whether native code takes over at this trip. `units`: those that are left; new ones have just been granted where a
  // poll has come, which is when a loop looks for code that was made meanwhile.
  // A loop with loops inside, in which polls come elsewhere, looks at every trip.
  bool goes_native(uint32_t index, int64_t units) const {
    if (!native_) return false;
    const bool looks = units == plan::kPollUnits || program_.loops[index].schedule.holds_loops;
    return (looks || loops_[index].trip == native_trip_) && native_code(index) != nullptr;
  }
  // The trips that are left of a loop whose next one has been counted, as native code, as a chain or straight through
  // the body; `in` is behind them then. Where there is no such way, nothing happens.
  Status run(uint32_t index, Budget& budget, const plan::Instruction*& in);
  // The back edge of a loop whose sizes only the run knows; `again`: there is another trip, which is counted.
  Status take_edge(uint32_t index, bool& again);
  // Counts the next trip, and sees to its block and to room for its rows.
  Status next(uint32_t index, Budget& budget);
  // The end of a loop, and of what nobody needs behind it.
  Status end_loop(uint32_t index) {
    TREADLE_TRY(loops_.end(index));
    frame_.release(program_.loops[index].releases, program_.loops[index].in_loop);
    return {};
  }
  // A loop comes to its end: what was lost by interpreting it is counted.
  void count_lost(uint32_t index) {
    if (!counts_) return;
    add_lost(index);
    if (native_->outermost(index) == index) tell_lost(index);
  }

 private:
  friend struct NativeHostFunctions;
  const NativeCode* native_code(uint32_t loop) const {
    return native_ && loops_[loop].trip >= native_trip_ ? native_->code(loop) : nullptr;
  }
  // native_code.cc; `failed`: where it failed.
  Status run_native(const NativeCode& code, Budget& budget, const plan::Instruction*& failed);
  int64_t granted(uint32_t index, const Budget& budget) const;
  Status run_bodies(const plan::Loop& loop, LoopPosition& at, Budget& budget, int64_t trips, bool& continues,
                    const plan::Instruction*& failed);
  void make_block(uint32_t index);
  void add_lost(uint32_t index);
  void tell_lost(uint32_t index);

  const plan::Program& program_;
  Frame& frame_;
  Polls& polls_;
  Loops& loops_;
  DynamicNodes& dynamic_;
  std::shared_ptr<NativeLoops> native_;
  int64_t native_trip_;
  const bool counts_;  // what interpreting loses
  Profile* profile_ = nullptr;
  // What has ended native code: an error, or what was thrown; and where, if native code does not know.
  Status native_status_;
  std::exception_ptr native_failure_;
  const plan::Instruction* native_failed_ = nullptr;
};

// The rows of a kernel from trip `first` on; `is_rest`: of the last block. Returns 0 or a KernelError.
uint32_t run_rows(Frame& frame, const plan::RowKernel& rows, int64_t first, bool is_rest);

}  // namespace treadle::run
