#include "run/team.h"

#include <algorithm>

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
    // Of the few stretches of a trial the least disturbed one counts.
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
  constexpr double kWorthIt = 0.95;  // a second core is not free
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

}  // namespace treadle::run
