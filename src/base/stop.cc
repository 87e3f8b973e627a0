#include "base/stop.h"

#include <algorithm>
#include <utility>

namespace treadle {

namespace {

thread_local StopSource* current_source = nullptr;

}  // namespace

StopSource* StopSource::current() {
  return current_source;
}

StopSource* StopSource::exchange(StopSource* source) {
  return std::exchange(current_source, source);
}

bool stop_requested() {
  return current_source && current_source->requested();
}

bool was_stopped() {
  return current_source && current_source->stopped();
}

void Pace::done(double units) {
  constexpr double kLeast = 1e-3;  // lower bound, however late the clock is: another process may have had the processor
  const Clock::time_point now = Clock::now();
  if (seen_ != Clock::time_point()) {
    const double took = std::chrono::duration<double, std::nano>(now - seen_).count();
    next_ = std::clamp(units * kStopCheckNs / std::max(took, 1.0), kLeast * most_, most_);
  }
  seen_ = now;
}

bool StopPoll::ask() {
  if (stop_requested()) return true;
  pace_.done(pace_.next() - left_);
  left_ = pace_.next();
  return false;
}

Status stopped() {
  return error(Code::kCancelled, "the work was stopped");
}

}  // namespace treadle
