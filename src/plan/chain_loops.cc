// The steps of the body, one chain after the other, then those of the back edge, in the order of LoopStep. Nothing in
// them can fail, so the interpreter only comes back to look at limits, to make room for rows, and at the end.
#include "plan/chain_loops.h"

#include <algorithm>

namespace treadle::plan {

namespace {

using kernels::as_detail;
using kernels::ChainStep;
using kernels::ChainTable;

bool is_chain(const Instruction& in) {
  return in.code == OpCode::kKernel && in.run == kernels::chain_steps().run;
}

bool can_be_steps(const Program& p, const Loop& loop) {
  if (!loop.simple) return false;
  bool any = false;
  for (uint32_t at = loop.first + 1; at + 1 < loop.last; ++at) {
    if (!is_chain(p.code[at]) && p.code[at].code != OpCode::kCopy) return false;
    any |= is_chain(p.code[at]);
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
    const auto* step = static_cast<const ChainStep*>(in.state);
    for (; step->run != kernels::chain_steps().end; ++step) steps.push_back(*step);
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

// Takes out instructions; jumps to one of them go to the next that stays.
class Compaction {
 public:
  Compaction(Program& p, std::vector<std::vector<uint32_t>>& operands) : p_(p), operands_(operands) {}

  void remove(const std::vector<bool>& gone) {
    std::vector<uint32_t> moved(p_.code.size() + 1);
    uint32_t next = 0;
    for (size_t at = 0; at < p_.code.size(); ++at) {
      moved[at] = next;
      if (gone[at]) continue;
      p_.code[next] = p_.code[at];
      p_.node_of[next] = p_.node_of[at];
      if (next != at) operands_[next] = std::move(operands_[at]);
      ++next;
    }
    p_.code.resize(next);
    p_.node_of.resize(next);
    operands_.resize(next);
    for (Instruction& in : p_.code) in.target = moved[in.target];
    for (Loop& loop : p_.loops) {
      loop.first = moved[loop.first];
      loop.last = moved[loop.last];
    }
    decltype(p_.fused) fused;
    for (auto& [at, nodes] : p_.fused) {
      auto& list = fused[moved[at]];
      list.insert(list.end(), nodes.begin(), nodes.end());
    }
    p_.fused = std::move(fused);
  }

 private:
  Program& p_;
  std::vector<std::vector<uint32_t>>& operands_;
};

}  // namespace

void chain_loops(Program& p, std::vector<std::vector<uint32_t>>& operands) {
  std::vector<bool> gone(p.code.size());
  for (uint32_t index = 0; index < p.loops.size(); ++index) {
    const Loop& loop = p.loops[index];
    if (!can_be_steps(p, loop)) continue;
    auto* chain = p.states.make<ChainLoop>();
    chain->run = kernels::chain_steps().run_trips;
    add_body(p, loop, chain->steps);
    add_back_edge(loop, chain->steps);
    // The last instruction of the body stands for all, so that what they work on lives as long.
    const uint32_t stays = loop.last - 1;
    std::vector<uint32_t> all;
    for (uint32_t at = loop.first + 1; at <= stays; ++at) {
      gone[at] = at != stays;
      all.insert(all.end(), operands[at].begin(), operands[at].end());
      if (p.code[at].code == OpCode::kCopy) {
        const Copy& copy = p.copies[p.code[at].index];
        all.insert(all.end(), {copy.from, copy.to});
      }
    }
    operands[stays] = std::move(all);
    p.code[stays] = {.code = OpCode::kLoopChain, .index = index, .target = loop.last, .state = chain};
  }
  if (std::find(gone.begin(), gone.end(), true) != gone.end()) Compaction(p, operands).remove(gone);
}

}  // namespace treadle::plan
