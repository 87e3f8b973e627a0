#pragma once
// Runs the iterations of a loop whose values are planned, in whichever way the loop runs, and the work between two
// iterations. Loops of the program, loops in strips (plan/strip_mining.h) and stages of a pipeline (plan/pipelines.h)
// all use it. If a body branches or has values of run-time size, the interpreter runs the body (execute.cc).

#include <exception>
#include <memory>

#include "run/dynamic.h"
#include "run/loops.h"
#include "run/native.h"

namespace treadle::run {

class LoopRunner {
 public:
  // `native`: null for no native code. `native_iteration`: the first iteration that may run as native code. All
  // arguments must outlive the object.
  LoopRunner(const plan::Program& program, Frame& frame, Polls& polls, Loops& loops, DynamicNodes& dynamic,
             std::shared_ptr<NativeLoops> native, int64_t native_iteration);
  LoopRunner(const LoopRunner&) = delete;
  LoopRunner& operator=(const LoopRunner&) = delete;

  void begin_run(Profile* profile) { profile_ = profile; }
  NativeLoops* native() const { return native_.get(); }

  // Begins a loop up to its first iteration, including its first strip of rows. `runs` is false if there are no
  // iterations.
  Status begin_loop(uint32_t index, bool& runs);
  // Asks for native code of a loop that is about to run its first iteration. Errors: native code is required and there
  // is none; `in` is then the instruction to name.
  Status request_native(uint32_t index, const plan::Instruction*& in);
  // Whether native code takes over at this iteration. `units`: what is left of the budget. All units are left just
  // after a poll, and that is when a loop looks for code that has been compiled meanwhile. A loop that holds loops
  // looks at every iteration, since polls happen in the inner loops.
  bool switches_to_native(uint32_t index, int64_t units) const {
    if (!native_) return false;
    const bool looks = units == plan::kPollUnits || program_.loops[index].schedule.holds_loops;
    return (looks || loops_[index].iteration == native_iteration_) && native_code(index) != nullptr;
  }
  // Runs the rest of a loop whose next iteration has been counted: as native code, as a chain, or straight through the
  // body. `in` is then behind the loop. If none of these ways is possible, nothing happens.
  Status run(uint32_t index, Budget& budget, const plan::Instruction*& in);
  // Takes the back edge of a loop with values of run-time size. `again`: there is another iteration, which is counted.
  Status take_edge(uint32_t index, bool& again);
  // Counts the next iteration, and makes its strip and room for its rows if needed.
  Status next(uint32_t index, Budget& budget);
  // Ends a loop, and releases values that nothing behind the loop needs.
  Status end_loop(uint32_t index) {
    TREADLE_TRY(loops_.end(index));
    frame_.release(program_.loops[index].releases, program_.loops[index].in_loop);
    return {};
  }
  // Counts at the end of a loop what interpreting it has cost.
  void count_lost(uint32_t index) {
    if (!counts_) return;
    add_lost(index);
    if (native_->outermost(index) == index) report_lost(index);
  }

 private:
  friend struct NativeHostFunctions;
  const NativeCode* native_code(uint32_t loop) const {
    return native_ && loops_[loop].iteration >= native_iteration_ ? native_->code(loop) : nullptr;
  }
  // In native_code.cc. `failed`: the instruction that failed.
  Status run_native(const NativeCode& code, Budget& budget, const plan::Instruction*& failed);
  int64_t granted(uint32_t index, const Budget& budget) const;
  Status run_bodies(const plan::Loop& loop, LoopPosition& at, Budget& budget, int64_t iterations, bool& continues,
                    const plan::Instruction*& failed);
  void make_strip(uint32_t index);
  void add_lost(uint32_t index);
  void report_lost(uint32_t index);

  const plan::Program& program_;
  Frame& frame_;
  Polls& polls_;
  Loops& loops_;
  DynamicNodes& dynamic_;
  std::shared_ptr<NativeLoops> native_;
  int64_t native_iteration_;
  const bool counts_;  // whether to count what interpreting costs
  Profile* profile_ = nullptr;
  // Why native code ended early: an error or an exception, and the instruction if native code does not know it.
  Status native_status_;
  std::exception_ptr native_failure_;
  const plan::Instruction* native_failed_ = nullptr;
};

// Computes the rows of a kernel from iteration `first` on. `is_rest`: these are the rows of the last strip. Returns 0
// or a KernelError.
uint32_t run_rows(Frame& frame, const plan::RowKernel& rows, int64_t first, bool is_rest);

}  // namespace treadle::run
