#include "session/limited_work.h"

#include "base/block_cache.h"

namespace treadle::session {

namespace {

std::shared_ptr<MemoryAccount> account_within() {
  const MemoryScope* around = MemoryScope::current();
  return MemoryAccount::make(around ? around->account() : nullptr);
}

}  // namespace

LimitedWork::LimitedWork(const WorkLimits& limits, std::string_view work)
    : around_(StopSource::current()), account_(account_within()) {
  limits_.begin(limits, work);
  account_->begin(limits.memory_limit);
}

LimitedWork::~LimitedWork() {
  release_idle_blocks();
}

// Not all that is counted can be refused (small tensors, what operators are lowered to): so memory is asked about too.
StopCheck LimitedWork::stop_check() const {
  const auto should_stop = [](const void* work) {
    const auto& self = *static_cast<const LimitedWork*>(work);
    if (self.limits_.should_stop() || (self.around_ && self.around_->requested())) return true;
    if (self.account_->fits(0)) return false;
    self.took_too_much_.store(true, std::memory_order_relaxed);
    return true;
  };
  return {should_stop, this};
}

// A limit of what is around it is for that to tell.
Status LimitedWork::reached(Status status) const {
  Status why = limits_.check();
  if (why.ok() && took_too_much_.load(std::memory_order_relaxed)) why = account_->refusal(0, kWhat);
  if (why.ok()) why = stopped();
  return std::move(why).in(status.place());
}

}  // namespace treadle::session
