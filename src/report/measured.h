#pragma once
// Measured times of instructions and loops with given inputs. explain uses them for sizes that are known only at run
// time, and for kernels that are called.

#include <optional>
#include <span>

#include "run/iterations.h"
#include "run/profile.h"
#include "session/session.h"

namespace treadle::report {

class Measured {
 public:
  // Runs the session with these inputs a few times, instruction by instruction. No value if a run fails or takes very
  // long, or if another program than `program` ran.
  static std::optional<Measured> run(const Session& session, std::span<const Feed> feeds, const plan::Program& program);

  // Total over all times that the loop ran.
  int64_t iterations(uint32_t loop) const { return iterations_.loops[loop].iterations; }
  // The average number of iterations each time that the loop ran; -1 if it did not run.
  double iterations_each_time(uint32_t loop) const;
  // The average time of an instruction per iteration of the loop around it; 0 if it did not run.
  double ns(uint32_t pc, uint32_t loop) const;
  // Of one run.
  double total_ns(uint32_t pc) const { return ns_[pc]; }
  // A whole run as programs make it, the fastest of a few.
  double run_ns() const { return run_ns_; }

 private:
  run::Iterations iterations_;
  double run_ns_ = 0;
  std::vector<double> ns_;  // by instruction: total of a run, the least of all runs
};

}  // namespace treadle::report
