#pragma once
// How many iterations the loops of a run made.

#include <cstdint>
#include <memory>
#include <vector>

#include "plan/program.h"

namespace treadle::run {

struct LoopCount {
  int64_t times = 0;       // that the loop began
  int64_t iterations = 0;  // of all these times together
};

struct Iterations {
  std::shared_ptr<const plan::Program> program;  // null: nothing has run
  std::vector<LoopCount> loops;                  // by loop of the program
};

}  // namespace treadle::run
