// The steps of a loop that is one chain: the body's chains, one after the other, then the back edge. No step can fail,
// so the interpreter takes over only to check limits, to make room for rows, and at the end.
#include "plan/chain_loops.h"

#include "plan/back_edge.h"

namespace treadle::plan {

namespace {

using kernels::as_detail;
using kernels::ChainStep;
using kernels::ChainTable;

// The steps of an instruction; null if it is no chain.
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

class BackEdge {
 public:
  explicit BackEdge(std::vector<ChainStep>& steps) : steps_(steps) {}

  void ask(uint32_t continues) { go_on_ = continues; }
  void put_row(const LoopStep::Row& row) { steps_.push_back(copy_step(row.from, row.to, row.bytes)); }
  void exchange(const LoopStep::Swap& swap) {
    steps_.push_back({isa_.swap, {swap.in, swap.in, swap.in}, swap.out, nullptr});
    if (swap.out == go_on_) go_on_ = swap.in;  // the test runs last, after the swap
  }
  void advance(const LoopStep::Advance& pointer) {
    const auto [s, stride] = pointer;
    steps_.push_back({isa_.advance, {s, s, s}, s, as_detail(stride)});
  }
  void count(uint32_t counter) {
    if (counter != kNoSlot) steps_.push_back({isa_.count, {}, counter, nullptr});
    const auto back = static_cast<int64_t>(steps_.size());
    steps_.push_back({go_on_ == kNoSlot ? isa_.again : isa_.again_if, {go_on_, go_on_, go_on_}, 0, as_detail(back)});
  }

 private:
  const ChainTable& isa_ = kernels::chain_steps();
  std::vector<ChainStep>& steps_;
  uint32_t go_on_ = kNoSlot;
};

}  // namespace

void chain_loops(Program& p) {
  for (Loop& loop : p.loops) {
    if (!can_be_steps(p, loop)) continue;
    auto* chain = p.states.make<ChainLoop>();
    chain->run = kernels::chain_steps().run_iterations;
    add_body(p, loop, chain->steps);
    take_back_edge(loop, BackEdge(chain->steps));
    loop.schedule.chain = chain;
  }
}

}  // namespace treadle::plan
