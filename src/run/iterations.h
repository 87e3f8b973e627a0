#pragma once
// Counts of the iterations that the loops of a run made.

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/program.h"

namespace treadle::run {

struct LoopCount {
  int64_t times = 0;       // how often the loop began
  int64_t iterations = 0;  // sum over all these times
};

struct Iterations {
  std::shared_ptr<const plan::Program> program;  // null: nothing has run
  std::vector<LoopCount> loops;                  // by loop of the program
};

}  // namespace treadle::run
