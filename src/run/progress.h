#pragma once
// Progress of a run, and the caller's function that is told of it. The measure is the iterations of the outermost
// loops. The function is called where the run asks the caller for interrupts (base/limits.h). So a run without such a
// function only notes which loop has begun.

#include <chrono>
#include <cstdint>
#include <utility>

#include "plan/native.h"
#include "plan/program.h"
#include "run/limits.h"

namespace treadle::run {

// Often enough for a progress bar. Taking Python's lock this often costs no noticeable time.
inline constexpr auto kReportInterval = std::chrono::milliseconds(50);

class Progress {
 public:
  // `program`: its loops give the total; must outlive the object. Null: the total is unknown.
  explicit Progress(const plan::Program* program) : program_(program) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Begins a run. Returns the options to begin its limits with.
  const RunOptions& begin_run(const RunOptions& options);
  // Notes outermost loops only.
  void begin(const plan::Loop& loop, const plan::LoopCounters& at) {
    if (!loop.in_loop) begin(at.iteration, at.iterations_known ? at.iterations : -1, loop.last);
  }
  void end(const plan::Loop& loop, const plan::LoopCounters& at) {
    if (!loop.in_loop) end(at.iteration);
  }
  // Begins one outermost loop, or several that run together. `made`: their count of iterations, read on the thread of
  // the run only. `total`: how many there will be, -1 if unknown. `end`: the instruction behind them.
  void begin(const int64_t& made, int64_t total, uint32_t end) {
    made_ = &made;
    total_ = total;
    end_ = end;
  }
  // Ends them after `made` iterations.
  void end(int64_t made) {
    ended_ += made;
    made_ = nullptr;
  }
  // Ends the run. After success the caller's function is called in any case. Errors: `status`; kCancelled if that
  // function cancels.
  Status finish(Status status) const { return has_listener() && status.ok() ? report_end() : std::move(status); }

  bool has_listener() const { return caller_.progress != nullptr; }
  int64_t done() const { return ended_ + (made_ ? *made_ : 0); }
  int64_t total() const;  // -1: not known

 private:
  static bool report(void* progress);
  Status report_end() const;

  const plan::Program* program_;
  RunOptions caller_;   // the caller's options if it has a progress function
  RunOptions watched_;  // the same options, with report() as their interrupt
  Limits::Clock::time_point next_;
  const int64_t* made_ = nullptr;  // iteration count of the loops that run
  int64_t total_ = 0;
  int64_t ended_ = 0;  // iterations of loops that have ended
  uint32_t end_ = 0;   // loops before this instruction have begun or were skipped
};

}  // namespace treadle::run
