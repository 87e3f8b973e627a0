#include "base/limits.h"

#include <algorithm>

namespace treadle {

namespace {

constexpr auto kBetweenInterrupts = std::chrono::milliseconds(5);

}  // namespace

void Limits::begin(const WorkLimits& limits, std::string_view work, Clock::time_point since) {
  limits_ = limits;
  work_ = work;
  owner_ = std::this_thread::get_id();
  interrupted_.store(false, std::memory_order_relaxed);
  next_interrupt_ = {};
  if (limits.time_limit_s > 0) {
    // A limit of more years than the clock can hold counts as none.
    constexpr double kLongest = 1e9;
    const std::chrono::duration<double> seconds(std::min(limits.time_limit_s, kLongest));
    if (since == Clock::time_point()) since = Clock::now();
    deadline_ = since + std::chrono::duration_cast<Clock::duration>(seconds);
  }
}

Limits::Reached Limits::reached() const {
  if (limits_.cancel && limits_.cancel->load(std::memory_order_relaxed)) return Reached::kCancelled;
  if (interrupted_.load(std::memory_order_relaxed)) return Reached::kInterrupted;
  if (!limits_.interrupted && limits_.time_limit_s <= 0) return Reached::kNothing;
  const auto now = Clock::now();
  if (limits_.time_limit_s > 0 && now > deadline_) return Reached::kTime;
  if (!limits_.interrupted || std::this_thread::get_id() != owner_) return Reached::kNothing;
  // Short work never calls the caller's function, which may cost more than the work.
  if (next_interrupt_ == Clock::time_point()) next_interrupt_ = now + kBetweenInterrupts;
  if (now <= next_interrupt_) return Reached::kNothing;
  next_interrupt_ = now + kBetweenInterrupts;
  if (!limits_.interrupted(limits_.interrupted_context)) return Reached::kNothing;
  interrupted_.store(true, std::memory_order_relaxed);
  return Reached::kInterrupted;
}

Status Limits::check() const {
  switch (reached()) {
    case Reached::kNothing:
      return {};
    case Reached::kCancelled:
      return error(Code::kCancelled, "the {} was cancelled", work_);
    case Reached::kTime:
      return error(Code::kLimit, "the time limit of {} s{} was reached", limits_.time_limit_s,
                   work_ == "run" ? "" : fmt::format(" for {}", work_));
    case Reached::kInterrupted:
      return error(Code::kCancelled, "the {} was interrupted", work_);
  }
  return {};
}

StopCheck Limits::stop_check() const {
  if (!limits_.cancel && !limits_.interrupted && limits_.time_limit_s <= 0) return {};
  return {[](const void* limits) { return static_cast<const Limits*>(limits)->should_stop(); }, this};
}

}  // namespace treadle
