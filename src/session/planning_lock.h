#pragma once
// Lets one thread at a time plan for a session.

#include "base/status.h"
#include "base/stoppable_lock.h"

namespace treadle::session {

class PlanningLock {
 public:
  // Holds the lock while it lives, if the calling thread got it.
  class Held {
   public:
    explicit Held(PlanningLock& lock) : lock_(lock.lock_), held_(lock.lock_) {}

    Status take() {
      if (lock_.is_mine()) {
        return error(Code::kRuntime, "a signal handler needs a new plan of a session that its thread is planning for");
      }
      return held_.take() ? Status() : stopped();
    }

   private:
    const StoppableLock& lock_;
    StoppableLock::Held held_;
  };

 private:
  StoppableLock lock_;
};

}  // namespace treadle::session
