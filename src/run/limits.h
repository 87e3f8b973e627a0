#pragma once
// Bounds of one run in any tier: the clock and the caller's flags (base/limits.h), and the number of iterations of all
// loops together. The run's MemoryAccount counts memory.

#include <cstdint>
#include <limits>

#include "run/options.h"

namespace treadle::run {

class RunLimits : public Limits {
 public:
  // Begins a run on the calling thread. `since`: when its time began; the default is now.
  void begin(const RunOptions& options, Clock::time_point since = {}) {
    Limits::begin(options, "run", since);
    iteration_limit_ = options.iteration_limit > 0 ? options.iteration_limit : std::numeric_limits<int64_t>::max();
  }

  // `begun`: iterations of all loops so far, including the one that is about to begin. Errors: kLimit.
  Status check_iterations(int64_t begun) const {
    if (begun <= iteration_limit_) return {};
    return error(Code::kLimit, "the limit of {} iterations was reached", iteration_limit_);
  }
  // How many iterations may begin before check_iterations() is an error.
  int64_t iterations_left(int64_t begun) const { return iteration_limit_ - begun; }
  bool counts_iterations() const { return iteration_limit_ != std::numeric_limits<int64_t>::max(); }

 private:
  int64_t iteration_limit_ = std::numeric_limits<int64_t>::max();
};

}  // namespace treadle::run
