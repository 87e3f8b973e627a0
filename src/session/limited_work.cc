#include "session/limited_work.h"

#include <ctime>

#include "base/block_cache.h"

namespace treadle::session {

namespace {

// A clock that advances every few milliseconds, and that is read faster than other clocks.
int64_t coarse_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

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

// Small tensors and lowerings are counted but cannot be refused, so memory is checked here too.
bool LimitedWork::should_stop() const {
  if (limits_.should_stop() || (around_ && around_->requested())) return true;
  if (account_->fits(0)) return false;
  took_too_much_.store(true, std::memory_order_relaxed);
  return true;
}

// Passes ask at every node. Most questions are answered without reading the clocks of this work and of a run around it,
// which would take longer. After a call of a program's own operator the clocks are read, since the call may have taken
// long.
StopCheck LimitedWork::stop_check() const {
  const auto asked = [](const void* work) {
    const auto& self = *static_cast<const LimitedWork*>(work);
    if (self.stops_.load(std::memory_order_relaxed)) return true;
    if (!self.is_due() || !self.should_stop()) return false;
    self.stops_.store(true, std::memory_order_relaxed);
    return true;
  };
  return {asked, this};
}

// Counts a question. Whether to read the clocks now.
bool LimitedWork::is_due() const {
  constexpr uint32_t kQuestionsPerLook = 8;
  const uint32_t before = asked_.load(std::memory_order_relaxed);
  asked_.store(before + 1, std::memory_order_relaxed);
  const int64_t now = coarse_clock_ns();
  if (before % kQuestionsPerLook != 0 && now == looked_ns_.load(std::memory_order_relaxed)) return false;
  looked_ns_.store(now, std::memory_order_relaxed);
  return true;
}

// A limit of the work around this one is reported by that work.
Status LimitedWork::reached(Status status) const {
  Status why = limits_.check();
  if (why.ok() && took_too_much_.load(std::memory_order_relaxed)) why = account_->refusal(0, kWhat);
  if (why.ok()) why = stopped();
  return std::move(why).in(status.place());
}

}  // namespace treadle::session
