// The steps of the body, one chain after the other, then those of the back edge, in the order of LoopStep. Nothing in
// them can fail, so the interpreter only comes back to look at limits, to make room for rows, and at the end.
#include "plan/chain_loops.h"

namespace treadle::plan {

namespace {

using kernels::as_detail;
using kernels::ChainStep;
using kernels::ChainTable;

// Its steps, null where it is no chain.
const ChainStep* chain_of(const Program& p, uint32_t at) {
  const KernelCall* call = kernel_of(p, at);
  return call ? call->chain : nullptr;
}

bool can_be_steps(const Program& p, const Loop& loop) {
  bool any = false;
  for (uint32_t at = loop.first + 1; loop.step.straight && at + 1 < loop.last; ++at) {
    if (p.code[at].code == OpCode::kCopy) continue;
    if (!chain_of(p, at)) return false;
    any = true;
  }
  return any;
}

ChainStep copy_step(uint32_t from, uint32_t to, size_t bytes) {
  return {kernels::chain_steps().copy(bytes), {from, from, from}, to, as_detail(static_cast<int64_t>(bytes))};
}

void add_body(const Program& p, const Loop& loop, std::vector<ChainStep>& steps) {
  for (uint32_t at = loop.first + 1; at + 1 < loop.last; ++at) {
    const Instruction& in = p.code[at];
    if (in.code == OpCode::kCopy) {
      const Copy& copy = p.copies[in.index];
      steps.push_back(copy_step(copy.from, copy.to, copy.bytes));
      continue;
    }
    for (const ChainStep* step = chain_of(p, at); step->run != kernels::chain_steps().end; ++step)
      steps.push_back(*step);
  }
}

void add_back_edge(const Loop& loop, std::vector<ChainStep>& steps) {
  const ChainTable& isa = kernels::chain_steps();
  for (const auto& [to, from, bytes] : loop.step.rows) steps.push_back(copy_step(from, to, bytes));
  uint32_t go_on = loop.go_on;
  for (const auto& [in, out] : loop.step.swaps) {
    steps.push_back({isa.swap, {in, in, in}, out, nullptr});
    if (out == go_on) go_on = in;  // asked after it has changed places
  }
  for (const auto& [s, stride] : loop.step.advances) steps.push_back({isa.advance, {s, s, s}, s, as_detail(stride)});
  if (loop.counter != kNoSlot) steps.push_back({isa.count, {}, loop.counter, nullptr});
  const auto back = static_cast<int64_t>(steps.size());
  steps.push_back({go_on == kNoSlot ? isa.again : isa.again_if, {go_on, go_on, go_on}, 0, as_detail(back)});
}

}  // namespace

void chain_loops(Program& p) {
  for (Loop& loop : p.loops) {
    if (!can_be_steps(p, loop)) continue;
    auto* chain = p.states.make<ChainLoop>();
    chain->run = kernels::chain_steps().run_trips;
    add_body(p, loop, chain->steps);
    add_back_edge(loop, chain->steps);
    loop.schedule.chain = chain;
  }
}

}  // namespace treadle::plan
