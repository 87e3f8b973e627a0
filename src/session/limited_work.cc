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
bool LimitedWork::should_stop() const {
  if (limits_.should_stop() || (around_ && around_->requested())) return true;
  if (account_->fits(0)) return false;
  took_too_much_.store(true, std::memory_order_relaxed);
  return true;
}

// Passes ask at every node, which takes less than looking at the clocks of this work and of the run around it.
StopCheck LimitedWork::stop_check() const {
  constexpr uint32_t kQuestionsPerLook = 8;
  const auto asked = [](const void* work) {
    const auto& self = *static_cast<const LimitedWork*>(work);
    if (self.stops_.load(std::memory_order_relaxed)) return true;
    const uint32_t before = self.asked_.load(std::memory_order_relaxed);
    self.asked_.store(before + 1, std::memory_order_relaxed);
    if (before % kQuestionsPerLook != 0 || !self.should_stop()) return false;
    self.stops_.store(true, std::memory_order_relaxed);
    return true;
  };
  return {asked, this};
}

// A limit of what is around it is for that to tell.
Status LimitedWork::reached(Status status) const {
  Status why = limits_.check();
  if (why.ok() && took_too_much_.load(std::memory_order_relaxed)) why = account_->refusal(0, kWhat);
  if (why.ok()) why = stopped();
  return std::move(why).in(status.place());
}

}  // namespace treadle::session
