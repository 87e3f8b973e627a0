#pragma once
// What an iteration of a loop takes: an estimate and a roof.
//
// The roof is the longest of three times: what the iteration computes, at the machine's speed; the memory that
// registers cannot hold, at the speed of the cache that holds it; and the loop-carried dependency. The estimate adds
// what the interpreter or the native code costs around the computation. With a run at hand, kernels that are called,
// and nodes whose sizes only the run knows, count as what they took there.

#include <vector>

#include "report/explain.h"

namespace treadle::report {

struct LoopCost {
  const plan::Program& program;
  const run::NativeLoops* native;  // null: no native code
  const Roofline& roof;
  const Measured* measured;  // null: nothing has run

  // Fills what a report says of an iteration, of calls and of operations. `others`: the loops inside are there.
  void add(uint32_t loop, const std::vector<LoopReport>& others, LoopReport& report) const;
};

}  // namespace treadle::report
