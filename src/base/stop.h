#pragma once
// Whether a thread should end its work early, because a limit was reached or the caller cancelled.
//
// parallel_for asks between its ranges. A loop that may take longer than kStopCheckNs in one piece counts its work:
//
//   StopPoll stop;
//   for (...) {
//     ...
//     if (stop.after(nanoseconds)) return fail(KernelError::kStopped);  // in a function that gives a Status: stopped()
//   }
//
// Results that are half written are thrown away with the run.

#include <atomic>
#include <chrono>

#include "base/status.h"

namespace treadle {

// May be called on any thread of the work.
struct StopCheck {
  bool (*should_stop)(const void* context) = nullptr;
  const void* context = nullptr;
};

// Long work asks whether to stop after pieces of this length.
inline constexpr double kStopCheckNs = 2'000'000;
// Work with a smaller estimate may be done in one piece. It is short enough even if the estimate is far too low.
inline constexpr double kShortNs = kStopCheckNs / 4;

// Answers whether the work of a thread should stop. base/thread_pool.h sets it for a thread (ThreadScope).
class StopSource {
 public:
  explicit StopSource(StopCheck check) : check_(check) {}
  // Once true, the answer stays true: some work may have ended early because of it.
  bool requested() {
    if (stopped()) return true;
    if (!check_.should_stop || !check_.should_stop(check_.context)) return false;
    stopped_.store(true, std::memory_order_relaxed);
    return true;
  }
  // Whether some work ended early because of it.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // The source of the calling thread; null: nothing can stop it.
  static StopSource* current();
  // Makes `source` the calling thread's, and returns the one before.
  static StopSource* exchange(StopSource* source);

 private:
  StopCheck check_;
  std::atomic<bool> stopped_{false};
};

// Asks now. Takes as long as reading a clock.
bool stop_requested();
// Whether an earlier question was answered with yes. Results of the calling thread's work may then be half written, so
// code that keeps a result checks this first.
bool was_stopped();

// Decides how much work to do in one piece. An estimate may be far too low, so the first pieces are short, and their
// measured time sets the length of later ones. Pieces can differ in speed, as with memory fresh from the system. So no
// piece is estimated to take longer than kShortNs.
class Pace {
 public:
  // `units`: how many units, of any kind, are estimated to take kStopCheckNs.
  explicit Pace(double units) : most_(units * (kShortNs / kStopCheckNs)), next_(units * kFirst) {}
  double next() const { return next_; }
  // Reports that a piece of `units` is done.
  void done(double units);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kFirst = 1.0 / 16;

  double most_, next_;
  Clock::time_point seen_;
};

class StopPoll {
 public:
  // Counts work of about `ns` nanoseconds, and asks after enough of it. After the first yes it asks every time, so that
  // a loop around the loop that stopped ends as well.
  bool after(double ns) {
    left_ -= ns;
    return left_ < 0 && ask();
  }

 private:
  bool ask();

  Pace pace_{kStopCheckNs};
  double left_ = pace_.next();
};

// For loops with steps of about a nanosecond: asks `stop` once for many steps, and counts in a register.
class StepPoll {
 public:
  StepPoll(StopPoll& stop, double ns) : stop_(stop), ns_(kSteps * ns) {}
  // Counts one step. True: the work is to stop.
  bool after_step() {
    if (--left_ > 0) return false;
    left_ = kSteps;
    return stop_.after(ns_);
  }

 private:
  static constexpr int kSteps = 1024;

  StopPoll& stop_;
  const double ns_;
  int left_ = kSteps;
};

// The error that a function returns when its work was told to stop. The code that set the limit replaces it by the
// error of that limit.
Status stopped();

}  // namespace treadle
