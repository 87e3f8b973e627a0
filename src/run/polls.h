#pragma once
// Decides when a run looks at its limits: about every plan::kPollUnits of work. Instructions count work by the plan's
// estimates, nodes of unknown size by the bytes that they move.

#include "op/costs.h"
#include "plan/program.h"
#include "run/limits.h"
#include "run/progress.h"
#include "run/team.h"

namespace treadle::run {

// Work that a run may do before it looks at limits.
struct Budget {
  int64_t units = 0;       // until the next poll
  int64_t iterations = 0;  // iterations of all loops that have begun
};

class Polls {
 public:
  explicit Polls(const plan::Program& program) : progress_(&program), teams_(program.loops) {}
  Polls(const Polls&) = delete;
  Polls& operator=(const Polls&) = delete;

  // Begins a run on the calling thread. `since`: when its time began, if before this call.
  void begin(const RunOptions& options, Limits::Clock::time_point since);
  // Begins another run with the options of the last one, which had neither limits nor listeners.
  void begin_again() {
    budget_ = {};
    uncounted_ns_ = 0;
    teams_.begin_run();
  }

  // Looks at limits, the cancel flag, signals and the clock.
  Status poll();
  // Looks at limits alone, between pieces of work that the plan has no estimate for.
  Status look() { return limits_.check(); }
  // Counts an iteration of `weight` units; polls if the units that the last poll granted are used up.
  Status count_iteration(int64_t weight, Budget& budget) {
    ++budget.iterations;
    return (budget.units -= weight) < 0 ? poll() : Status();
  }
  // Counts work of unknown size by the bytes that it reads and writes, and looks at limits if that was much.
  Status charge(size_t bytes) {
    uncounted_ns_ += costs::kDynamicByteNs * static_cast<double>(bytes);
    if (uncounted_ns_ < static_cast<double>(plan::kPollUnits) * plan::kPollUnitNs) return {};
    uncounted_ns_ = 0;
    return limits_.check();
  }

  Budget& budget() { return budget_; }
  const RunLimits& limits() const { return limits_; }
  Progress& progress() { return progress_; }
  LoopTeams& teams() { return teams_; }

 private:
  RunLimits limits_;
  Budget budget_;
  double uncounted_ns_ = 0;  // work since the last look that no weight of a loop counts
  Progress progress_;
  LoopTeams teams_;
};

}  // namespace treadle::run
