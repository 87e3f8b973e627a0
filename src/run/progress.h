#pragma once
// How far a run is, and the caller's function that is told of it. A run is as far as the iterations of its outermost
// loops. The function is told where the caller is asked for interrupts (base/limits.h), so a run that nobody watches
// does nothing for it but note which loop has begun.

#include <chrono>
#include <cstdint>
#include <utility>

#include "plan/native.h"
#include "plan/program.h"
#include "run/limits.h"

namespace treadle::run {

// Often enough for a bar; that Python's lock is taken as often is not felt.
inline constexpr auto kBetweenTellings = std::chrono::milliseconds(50);

class Progress {
 public:
  // `program`: says which loops are still to come, and must outlive the object; null: nobody knows.
  explicit Progress(const plan::Program* program) : program_(program) {}
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // A run begins. Returns the options that its limits are to begin with.
  const RunOptions& begin_run(const RunOptions& options);
  // Of loops within loops, nothing is noted.
  void begin(const plan::Loop& loop, const plan::LoopCounters& at) {
    if (!loop.in_loop) begin(at.trip, at.trips_known ? at.trips : -1, loop.last);
  }
  void end(const plan::Loop& loop, const plan::LoopCounters& at) {
    if (!loop.in_loop) end(at.trip);
  }
  // Outermost loops begin, one or several at a time. `made`: where their iterations are counted, which is read by the
  // thread of the run alone. `total`: how many they will be, -1 where nobody knows. `end`: the instruction behind them.
  void begin(const int64_t& made, int64_t total, uint32_t end) {
    made_ = &made;
    total_ = total;
    end_ = end;
  }
  // They have made so many.
  void end(int64_t made) {
    ended_ += made;
    made_ = nullptr;
  }
  // The run has ended. Of one that has succeeded the caller is told, whatever the time. Errors: `status`; kCancelled,
  // the caller wants no more.
  Status finish(Status status) const { return is_told() && status.ok() ? tell_end() : std::move(status); }

  bool is_told() const { return told_.progress != nullptr; }
  int64_t done() const { return ended_ + (made_ ? *made_ : 0); }
  int64_t total() const;  // -1: not known

 private:
  static bool ask(void* progress);
  Status tell_end() const;

  const plan::Program* program_;
  RunOptions told_;  // those of the caller, where somebody is to be told
  RunOptions asking_;
  Limits::Clock::time_point next_;
  const int64_t* made_ = nullptr;  // of the loops that run
  int64_t total_ = 0;
  int64_t ended_ = 0;  // iterations of loops that have ended
  uint32_t end_ = 0;   // loops before this instruction have begun, or have been passed by
};

}  // namespace treadle::run
