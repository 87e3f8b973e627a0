#pragma once
// One thread at a time plans for a session. A thread that waits for the lock can be stopped. A fork does not wait for a
// plan: in the child, which has no thread that plans, the lock is free.

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/status.h"
#include "base/stop.h"

namespace treadle::session {

class PlanningLock {
 public:
  // While it lives, the calling thread has the lock, if it got it.
  class Held {
   public:
    explicit Held(PlanningLock& lock) : lock_(lock) {}
    ~Held() {
      if (!taken_) return;
      lock_.thread_.store({}, std::memory_order_relaxed);
      lock_.holder_.store(0, std::memory_order_release);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    Status take() {
      const pid_t self = getpid();
      for (pid_t other = 0; !lock_.holder_.compare_exchange_strong(other, self, std::memory_order_acquire);) {
        if (other != self) continue;  // of another process: the next try takes it over
        if (lock_.thread_.load(std::memory_order_relaxed) == std::this_thread::get_id()) {
          return error(Code::kRuntime,
                       "a signal handler needs a new plan of a session that its thread is planning for");
        }
        if (stop_requested()) return stopped();
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        other = 0;
      }
      lock_.thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
      taken_ = true;
      return {};
    }

   private:
    PlanningLock& lock_;
    bool taken_ = false;
  };

 private:
  std::atomic<pid_t> holder_{0};  // 0: nobody
  std::atomic<std::thread::id> thread_;
};

}  // namespace treadle::session
