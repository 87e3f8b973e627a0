#pragma once
// The time of an iteration of a loop: an estimate and a roof.
//
// The roof is the longest of three times: the arithmetic at the machine's speed; the memory traffic that registers
// cannot avoid, at the speed of the cache that holds the data; and the loop-carried dependency. The estimate adds the
// cost of the interpreter or of native code around the arithmetic. If the model was run, kernels that are called and
// nodes of unknown size count with their measured time.

#include <vector>

#include "report/explain.h"

namespace treadle::report {

struct LoopCost {
  const plan::Program& program;
  const run::NativeLoops* native;  // null: no native code
  const Roofline& roof;
  const Measured* measured;  // null: nothing has run

  // Fills the parts of a report about an iteration, calls and operations. `others`: has the reports of the inner loops.
  void add(uint32_t loop, const std::vector<LoopReport>& others, LoopReport& report) const;
  // Fills the parts of an explanation about a whole run, from its loops and their iterations.
  void add_run(Explanation& explanation) const;

 private:
  double outside_ns(uint32_t pc) const;  // of an instruction outside of loops, in a run
};

}  // namespace treadle::report
