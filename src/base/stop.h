#pragma once
// Whether the work that a thread is doing should end early: a limit was reached, or nobody wants the result any more.
//
// parallel_for asks between its ranges. A loop that may take longer than kStopCheckNs in one piece counts what it does:
//
//   StopPoll stop;
//   for (...) {
//     ...
//     if (stop.after(nanoseconds)) return fail(KernelError::kStopped);  // in a function that gives a Status: stopped()
//   }
//
// What has been written until then is thrown away with the run.

#include <atomic>
#include <chrono>

#include "base/status.h"

namespace treadle {

// Asked from any thread of the work.
struct StopCheck {
  bool (*should_stop)(const void* context) = nullptr;
  const void* context = nullptr;
};

// Between pieces of work of this length, somebody asks whether to stop.
inline constexpr double kStopCheckNs = 2'000'000;
// Work that is estimated to take less may be done in one piece: it does not take too long even if it takes many times
// as long as estimated.
inline constexpr double kShortNs = kStopCheckNs / 4;

// Whoever asks for work to be stopped; base/thread_pool.h makes it that of a thread (ThreadScope).
class StopSource {
 public:
  explicit StopSource(StopCheck check) : check_(check) {}
  // Once the answer was yes it stays yes: some work may have ended early because of it.
  bool requested() {
    if (stopped()) return true;
    if (!check_.should_stop || !check_.should_stop(check_.context)) return false;
    stopped_.store(true, std::memory_order_relaxed);
    return true;
  }
  // Whether some work ended early because of it.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

  // Of the calling thread; null: nobody can stop it.
  static StopSource* current();
  // Makes `source` that of the calling thread, and returns the one before.
  static StopSource* exchange(StopSource* source);

 private:
  StopCheck check_;
  std::atomic<bool> stopped_{false};
};

// Asks now. Takes as long as looking at a clock.
bool stop_requested();
// Whether the answer to an earlier question was yes: results of the calling thread's work may be half written. Whoever
// keeps a result looks here first.
bool was_stopped();

// How much work to do in one piece. An estimate of what it takes may be far too low, so the first pieces are short, and
// tell by the clock how long the others may be. Pieces may differ, as they do where memory comes fresh from the system
// here and there; so none is longer than estimated to take kShortNs.
class Pace {
 public:
  // `units`: of any kind, what is estimated to take kStopCheckNs.
  explicit Pace(double units) : most_(units * (kShortNs / kStopCheckNs)), next_(units * kFirst) {}
  double next() const { return next_; }
  // A piece of so many units was done.
  void done(double units);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr double kFirst = 1.0 / 16;

  double most_, next_;
  Clock::time_point seen_;
};

class StopPoll {
 public:
  // Counts work of about `ns` nanoseconds; now and then, asks. Once it was told to stop it asks every time, so that a
  // loop around the one that was told ends as well.
  bool after(double ns) {
    left_ -= ns;
    return left_ < 0 && ask();
  }

 private:
  bool ask();

  Pace pace_{kStopCheckNs};
  double left_ = pace_.next();
};

// For loops whose steps take about a nanosecond each: asks `stop` for many of them at once, and counts in a register.
class StepPoll {
 public:
  StepPoll(StopPoll& stop, double ns) : stop_(stop), ns_(kSteps * ns) {}
  // One step more; true: it was told to stop.
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

// What a function returns that was told to stop. Whoever set the limit says which it was.
Status stopped();

}  // namespace treadle
