#pragma once
// Loops whose bodies are nothing but chains (kernels/chain.h) as one instruction each.

#include "kernels/chain.h"
#include "plan/program.h"

namespace treadle::plan {

// The steps of body and back edge. The instructions of the body stay for native code, which does not use the steps.
struct ChainLoop {
  decltype(kernels::ChainTable::run_iterations) run = nullptr;
  std::vector<kernels::ChainStep> steps;
};

// Turns each simple loop whose body has only chains and copies into the steps of a ChainLoop.
void chain_loops(Program& program);

}  // namespace treadle::plan
