#pragma once
// What bounds one run, whichever tier runs it: the clock and the caller's flags (base/limits.h), and how many trips its
// loops may make together. Memory is counted by the run's MemoryAccount.

#include <cstdint>
#include <limits>

#include "run/options.h"

namespace treadle::run {

class RunLimits : public Limits {
 public:
  // The run begins, on the calling thread. `since`: when its time began; left out, now.
  void begin(const RunOptions& options, Clock::time_point since = {}) {
    Limits::begin(options, "run", since);
    trip_limit_ = options.trip_limit > 0 ? options.trip_limit : std::numeric_limits<int64_t>::max();
  }

  // `begun`: trips of all loops so far, the one that is about to begin included. Errors: kLimit.
  Status check_trips(int64_t begun) const {
    if (begun <= trip_limit_) return {};
    return error(Code::kLimit, "the limit of {} iterations was reached", trip_limit_);
  }
  // Trips that may still begin before check_trips() is an error.
  int64_t trips_left(int64_t begun) const { return trip_limit_ - begun; }
  bool counts_trips() const { return trip_limit_ != std::numeric_limits<int64_t>::max(); }

 private:
  int64_t trip_limit_ = std::numeric_limits<int64_t>::max();
};

}  // namespace treadle::run
