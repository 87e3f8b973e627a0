#pragma once
// What bounds a piece of work of the caller's (a run, loading a model), and the clock that runs while it goes on.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <thread>

#include "base/status.h"
#include "base/stop.h"

namespace treadle {

struct WorkLimits {
  const std::atomic<bool>* cancel = nullptr;  // another thread sets it
  bool (*interrupted)(void*) = nullptr;       // asked about every 5 ms, from the thread that works (signal checks)
  void* interrupted_context = nullptr;
  double time_limit_s = 0;  // 0: none
  size_t memory_limit = 0;  // bytes; 0: what the machine has left (base/memory_account.h)
};

// One piece of work under its limits. Everything but time and flags is counted elsewhere.
class Limits {
 public:
  Limits() = default;
  using Clock = std::chrono::steady_clock;

  // The work begins, on the calling thread. `work`: what errors call it ("run"). `since`: when its time began; left
  // out, now.
  void begin(const WorkLimits& limits, std::string_view work, Clock::time_point since = {});

  // The error that a limit has become. Asks the caller's questions, so only on the thread that began.
  Status check() const;
  // The same question from any thread of the work; `interrupted` is asked on the one that began.
  bool should_stop() const { return reached() != Reached::kNothing; }
  // Nothing to ask while there is nothing that could stop the work.
  StopCheck stop_check() const;

 private:
  enum class Reached : uint8_t { kNothing, kCancelled, kTime, kInterrupted };
  Reached reached() const;

  WorkLimits limits_;
  std::string_view work_ = "work";
  std::thread::id owner_;
  Clock::time_point deadline_;
  // An interrupt is told once; that it came is kept.
  mutable std::atomic<bool> interrupted_{false};
  mutable Clock::time_point next_interrupt_;  // of the owner's
};

}  // namespace treadle
