#pragma once
// Loops whose bodies are nothing but chains (kernels/chain.h) as one instruction each.

#include "kernels/chain.h"
#include "plan/program.h"

namespace treadle::plan {

// The state of a kLoopChain.
struct ChainLoop {
  decltype(kernels::ChainTable::run_trips) run = nullptr;
  std::vector<kernels::ChainStep> steps;
};

// Where a simple loop's body is chains and copies only, they and the back edge become the steps of one kLoopChain.
// `operands`: per instruction; instructions that are left over are taken out of both.
void chain_loops(Program& program, std::vector<std::vector<uint32_t>>& operands);

}  // namespace treadle::plan
