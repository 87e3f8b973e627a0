#include "run/writes.h"

#include "plan/roles.h"

namespace treadle::run {

using plan::Loop;
using plan::LoopState;
using plan::OpCode;
using plan::Role;
using plan::ScanInput;
using plan::ScanOutput;

namespace {

using How = Write::How;

void add(std::vector<Write>& writes, uint32_t slot, How how, uint32_t from = plan::kNoSlot, uint32_t output = 0) {
  if (slot != plan::kNoSlot) writes.push_back({slot, how, from, output});
}

}  // namespace

Writes::Writes(const plan::Program& program) : by_pc_(program.code.size()) {
  for (uint32_t pc = 0; pc < program.code.size(); ++pc) {
    const plan::Instruction& in = program.code[pc];
    Instruction& made = by_pc_[pc];
    switch (in.code) {
      case OpCode::kKernel:
      case OpCode::kGuarded:
      case OpCode::kCompute:
      case OpCode::kRow:
        plan::for_each_slot(program, pc, [&](const plan::SlotUse& use) {
          if (plan::writes(use.role) || use.role == Role::kPoints) {
            add(made.writes, use.slot, How::kComputes, plan::kNoSlot, use.number);
          } else if (use.role == Role::kReads || use.role == Role::kReadsValue || use.role == Role::kReadsRows) {
            made.reads.push_back(use.slot);
          }
        });
        break;
      case OpCode::kCopy:
        add(made.writes, program.copies[in.index].to, How::kTakes, program.copies[in.index].from);
        break;
      case OpCode::kMove:
        add(made.writes, program.moves[in.index].to, How::kTakes, program.moves[in.index].from);
        break;
      default:
        break;
    }
  }
  for (const Loop& loop : program.loops) add_loop(loop);
}

// The instructions of a loop: kLoopBegin at `first`, the body, the back edge in front of kLoopEnd, which is `last`.
void Writes::add_loop(const Loop& loop) {
  Instruction& begin = by_pc_[loop.first];
  Instruction& back = by_pc_[loop.last - 1];
  Instruction& end = by_pc_[loop.last];
  for (const LoopState& state : loop.states) {
    add(begin.writes, state.in, How::kTakes, state.initial);
    add(back.writes, state.in, How::kTakes, state.out);
    add(end.writes, state.final, How::kTakes, state.in);
  }
  for (const ScanOutput& scan : loop.scan_outputs) {
    add(begin.writes, scan.whole, How::kEmpties);
    add(back.writes, scan.whole, How::kAdds, scan.element);
    // The rows are complete. A masked loop has added zeros behind its last iteration.
    add(end.writes, scan.whole, loop.masked ? How::kComputes : How::kTakes, scan.whole);
  }
  begin.body = back.body = loop.first + 1;
  for (Instruction* edge : {&begin, &back}) {
    edge->entering = edge->writes;
    for (const ScanInput& scan : loop.scan_inputs) add(edge->entering, scan.element, How::kComputes, scan.whole);
    add(edge->entering, loop.counter, How::kComputes);
  }
}

}  // namespace treadle::run
