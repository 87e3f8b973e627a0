#pragma once
// Loading, planning, opening a stream: work of the engine whose length a model decides. LimitedWork bounds the time and
// memory of such work, and can stop the work. A run that plans, or a stream that loads its graphs, has limits of its
// own on the same thread, which hold as well.

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
  // Begins, on the calling thread. `work`: what errors call it ("loading").
  LimitedWork(const WorkLimits& limits, std::string_view work);
  // Gives the system back what only such work needs.
  ~LimitedWork();
  LimitedWork(const LimitedWork&) = delete;
  LimitedWork& operator=(const LimitedWork&) = delete;

  // The status of `fn()`, or of the limit that was reached on the way.
  template <class Fn>
  Status run(Fn&& fn) {
    const MemoryScope counted(account_);
    const ThreadScope scope(1, stop_check());
    Status status = within_memory(fn, kWhat);
    return scope.stopped() ? reached(std::move(status)) : std::move(status);
  }

 private:
  static constexpr std::string_view kWhat = "the model and what is made of it";  // takes memory

  StopCheck stop_check() const;
  bool is_due() const;
  bool should_stop() const;
  Status reached(Status status) const;

  Limits limits_;
  StopSource* const around_;
  const std::shared_ptr<MemoryAccount> account_;
  mutable std::atomic<bool> took_too_much_{false}, stops_{false};
  mutable std::atomic<uint32_t> asked_{0};  // threads that count at once may lose a question
  mutable std::atomic<int64_t> looked_ns_{0};
};

}  // namespace treadle::session
