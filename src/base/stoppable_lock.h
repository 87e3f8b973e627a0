#pragma once
// A lock for long work: a thread that waits for it can be stopped. A fork does not wait for it; in the child, which
// does not have the thread that held it, the lock is free. So the guarded data must be consistent whenever the holder
// may ask whether to stop. Changes in between are made within a NoFork (base/no_fork.h).

#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/stop.h"

namespace treadle {

class StoppableLock {
 public:
  // Holds the lock while it lives, if take() succeeded.
  class Held {
   public:
    explicit Held(StoppableLock& lock) : lock_(lock) {}
    ~Held() {
      if (!taken_) return;
      lock_.thread_.store({}, std::memory_order_relaxed);
      lock_.holder_.store(0, std::memory_order_release);
    }
    Held(const Held&) = delete;
    Held& operator=(const Held&) = delete;

    // Not to be called if is_mine(). False: the calling thread was told to stop before it got the lock.
    bool take() {
      const pid_t self = getpid();
      for (pid_t other = 0; !lock_.holder_.compare_exchange_strong(other, self, std::memory_order_acquire);) {
        if (other != self)
          continue;  // held by another process, so this is the child of a fork: the next try takes it
                     // over
        if (stop_requested()) return false;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
        other = 0;
      }
      lock_.thread_.store(std::this_thread::get_id(), std::memory_order_relaxed);
      taken_ = true;
      return true;
    }

   private:
    StoppableLock& lock_;
    bool taken_ = false;
  };

  // Whether the calling thread has the lock. A signal handler may run on this thread while its work asks whether to
  // stop, and the handler may try to take the lock again.
  bool is_mine() const {
    return holder_.load(std::memory_order_relaxed) == getpid() &&
           thread_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }

 private:
  std::atomic<pid_t> holder_{0};  // the process whose thread has the lock; 0: free
  std::atomic<std::thread::id> thread_;
};

}  // namespace treadle
