#include "run/team.h"

#include <algorithm>

#include "base/thread_pool.h"

namespace treadle::run {

bool TeamTrial::took(double ns_per_unit) {
  if (wakes_) {
    wakes_ = false;
    return team_;
  }
  double& ns = ns_[team_];
  if (ns == 0) {
    ns = ns_per_unit;
  } else {
    // The least disturbed stretch of a trial counts.
    ns = trying_ ? std::min(ns, ns_per_unit) : ns + (ns_per_unit - ns) / 4;
  }
  if (--left_ > 0) return team_;
  if (!trying_) {
    change();
    trying_ = true;
    ns_[team_] = 0;
    left_ = kTrial;
    return team_;
  }
  trying_ = false;
  constexpr double kWorthIt = 0.95;  // a team has to save more than this share, as a second core is not free
  const bool better = ns_[1] < kWorthIt * ns_[0];
  if (better == team_) {
    hold_ = kFirstHold;
  } else {
    change();
    hold_ = std::min(2 * hold_, kLastHold);
  }
  left_ = hold_;
  return team_;
}

void LoopTeams::start(uint32_t loop) {
  running_ = loop;
  units_ = 0;
  set_team(trials_[loop].team());
}

void LoopTeams::stop() {
  running_ = kNone;
  set_team(false);
}

void LoopTeams::measure(int64_t units) {
  if (running_ == kNone) return;
  const auto now = std::chrono::steady_clock::now();
  if (units_ > 0) {
    const double ns = std::chrono::duration<double, std::nano>(now - since_).count();
    set_team(trials_[running_].took(ns / static_cast<double>(units_)));
  }
  since_ = now;
  units_ = units;
}

}  // namespace treadle::run
