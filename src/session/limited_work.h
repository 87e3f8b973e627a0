#pragma once
// Bounds time and memory of loading, planning and opening a stream, whose length depends on the model, and can stop
// them. If a run plans, or a stream loads its graphs, the limits of the run or stream hold on the same thread as well.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/limits.h"
#include "base/memory_account.h"
#include "base/thread_pool.h"

namespace treadle::session {

class LimitedWork {
 public:
  // Begins on the calling thread. `work`: its name in errors ("loading").
  LimitedWork(const WorkLimits& limits, std::string_view work);
  // Frees cached memory that runs do not need.
  ~LimitedWork();
  LimitedWork(const LimitedWork&) = delete;
  LimitedWork& operator=(const LimitedWork&) = delete;

  // The status of `fn()`, or the error of a limit that was reached meanwhile.
  template <class Fn>
  Status run(Fn&& fn) {
    const MemoryScope counted(account_);
    const ThreadScope scope(1, stop_check());
    Status status = within_memory(fn, kWhat);
    return scope.stopped() ? reached(std::move(status)) : std::move(status);
  }

 private:
  static constexpr std::string_view kWhat = "the model and what is made of it";  // what takes memory, for errors

  StopCheck stop_check() const;
  bool is_due() const;
  bool should_stop() const;
  Status reached(Status status) const;

  Limits limits_;
  StopSource* const around_;
  const std::shared_ptr<MemoryAccount> account_;
  mutable std::atomic<bool> took_too_much_{false}, stops_{false};
  mutable std::atomic<uint32_t> asked_{0};  // threads that count at the same time may lose a question
  mutable std::atomic<int64_t> looked_ns_{0};
};

}  // namespace treadle::session
