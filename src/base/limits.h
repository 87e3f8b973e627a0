#pragma once
// Limits of a piece of work for the caller (a run, loading a model), and the clock that runs meanwhile.

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
  bool (*interrupted)(void*) = nullptr;       // called about every 5 ms on the thread that works; returns true to stop
                                              // (signal checks)
  void* interrupted_context = nullptr;
  double time_limit_s = 0;  // 0: none
  size_t memory_limit = 0;  // bytes; 0: what the machine has left (base/memory_account.h)
};

// The limits of time and the caller's flags for one piece of work. Memory and iterations are counted elsewhere.
class Limits {
 public:
  Limits() = default;
  using Clock = std::chrono::steady_clock;

  // Begins the work on the calling thread. `work`: its name in errors ("run"). `since`: when its time began; the
  // default is now.
  void begin(const WorkLimits& limits, std::string_view work, Clock::time_point since = {});

  // The error of a limit that was reached. May call the caller's function, so only on the thread that began the work.
  Status check() const;
  // Whether a limit was reached, from any thread of the work. Only the thread that began the work calls `interrupted`.
  bool should_stop() const { return reached() != Reached::kNothing; }
  // Empty if nothing can stop the work.
  StopCheck stop_check() const;

 private:
  enum class Reached : uint8_t { kNothing, kCancelled, kTime, kInterrupted };
  Reached reached() const;

  WorkLimits limits_;
  std::string_view work_ = "work";
  std::thread::id owner_;
  Clock::time_point deadline_;
  // The caller reports an interrupt once, so it is remembered here.
  mutable std::atomic<bool> interrupted_{false};
  mutable Clock::time_point next_interrupt_;  // used by the thread that began the work
};

}  // namespace treadle
