#pragma once
// When a run looks at its limits: about every plan::kPollUnits of work, which instructions count by the plan's
// estimates and nodes of unknown size by the bytes that they move.

#include "op/costs.h"
#include "plan/program.h"
#include "run/limits.h"
#include "run/progress.h"
#include "run/team.h"

namespace treadle::run {

// What a run may do before it looks at its limits.
struct Budget {
  int64_t units = 0;  // until the next poll
  int64_t trips = 0;  // of all loops so far, the ones begun included
};

class Polls {
 public:
  explicit Polls(const plan::Program& program) : progress_(&program), teams_(program.loops) {}
  Polls(const Polls&) = delete;
  Polls& operator=(const Polls&) = delete;

  // A run begins, on the calling thread. `since`: when its time began, if before now.
  void begin(const RunOptions& options, Limits::Clock::time_point since);

  // Limits, the cancel flag, signals, time.
  Status poll();
  // The limits alone, between pieces of work of which no plan knows how long they take.
  Status look() { return limits_.check(); }
  // A trip begins that takes `weight` units; polls where those that a poll granted are used up.
  Status count_trip(int64_t weight, Budget& budget) {
    ++budget.trips;
    return (budget.units -= weight) < 0 ? poll() : Status();
  }
  // Counts work whose sizes the plan did not know, by the bytes that it reads and writes, and looks at the limits when
  // it was much.
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
  double uncounted_ns_ = 0;  // of work that no weight of a loop counts, since limits were looked at
  Progress progress_;
  LoopTeams teams_;
};

}  // namespace treadle::run
