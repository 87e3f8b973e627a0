#pragma once
// What instructions and loops took in runs with given inputs: explain uses it where sizes are known only while a model
// runs, and where a kernel is called.

#include <optional>
#include <span>

#include "run/iterations.h"
#include "run/profile.h"
#include "session/session.h"

namespace treadle::report {

class Measured {
 public:
  // Runs the session with these inputs, instruction by instruction, a few times. Nothing where a run fails or takes
  // very long, or where another program than `program` ran.
  static std::optional<Measured> run(const Session& session, std::span<const Feed> feeds, const plan::Program& program);

  // Of all times that the loop ran.
  int64_t iterations(uint32_t loop) const { return iterations_.loops[loop].iterations; }
  // What the loop made each time it ran, on average; -1: it did not run.
  double iterations_each_time(uint32_t loop) const;
  // What an instruction took in an iteration of the loop around it, on average over all iterations; 0 where it did not
  // run.
  double ns(uint32_t pc, uint32_t loop) const;
  // Of one run.
  double total_ns(uint32_t pc) const { return ns_[pc]; }

 private:
  run::Iterations iterations_;
  std::vector<double> ns_;  // by instruction: the least of the runs, all times together
};

}  // namespace treadle::report
