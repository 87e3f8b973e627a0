#include "run/polls.h"

#include <algorithm>

namespace treadle::run {

void Polls::begin(const RunOptions& options, Limits::Clock::time_point since) {
  budget_ = {};
  uncounted_ns_ = 0;
  teams_.begin_run();
  limits_.begin(progress_.begin_run(options), since);
}

Status Polls::poll() {
  TREADLE_TRY(limits_.check_iterations(budget_.iterations));
  // An iteration costs at least one unit.
  budget_.units = std::min(plan::kPollUnits, limits_.iterations_left(budget_.iterations));
  teams_.measure(budget_.units);
  return limits_.check();
}

}  // namespace treadle::run
