#pragma once
// Loops whose bodies are nothing but chains (kernels/chain.h) as one instruction each.

#include "kernels/chain.h"
#include "plan/program.h"

namespace treadle::plan {

// Body and back edge. The instructions of the body stay, for who makes something else of
// them.
struct ChainLoop {
  decltype(kernels::ChainTable::run_trips) run = nullptr;
  std::vector<kernels::ChainStep> steps;
};

// Where a simple loop's body is chains and copies only, they and the back edge become the steps of one ChainLoop.
void chain_loops(Program& program);

}  // namespace treadle::plan
