#include "run/realtime.h"

#include <fmt/format.h>

#include "op/place.h"
#include "run/native.h"

namespace treadle::run {

using plan::OpCode;
using plan::Storage;

// Instructions whose memory is known only in the run ask for it there.
std::string asks_for_memory(const plan::Program& program) {
  for (uint32_t pc = 0; pc < program.code.size(); ++pc) {
    const OpCode code = program.code[pc].code;
    if (code != OpCode::kGuarded && code != OpCode::kCompute) continue;
    const ir::Node& node = *program.node_of[pc];
    if (node.op->custom) return fmt::format("{} is an operator of the caller's", node_place(node));
    return fmt::format("{} {}", node_place(node),
                       code == OpCode::kGuarded ? "has sizes that only a run knows" : "makes values of any size");
  }
  for (const plan::Loop& loop : program.loops) {
    for (const plan::LoopState& state : loop.states) {
      if (!state.planned) return fmt::format("{} carries a state that changes its size", node_place(*loop.node));
    }
  }
  for (size_t i = 0; i < program.outputs.size(); ++i) {
    if (program.slots[program.outputs[i].slot].storage == Storage::kHandle) {
      return fmt::format("output {} has a size that only a run knows", i);
    }
  }
  return {};
}

namespace {

// A loop that is not compiled yet may be while a run waits for its turn in the queue of loops to compile.
std::string may_compile(const plan::Program& program, const NativeLoops& native) {
  if (native.mode() == Jit::kOff) return {};
  for (uint32_t i = 0; i < program.loops.size(); ++i) {
    if (native.outermost(i) != i || native.code(i) || native.state(i).tried) continue;
    return fmt::format("{} may still be compiled: warm up first", node_place(*program.loops[i].node));
  }
  return {};
}

}  // namespace

std::string breaks_realtime(const plan::Program& program, const NativeLoops* native) {
  if (program.threads > 1) {
    return "the session may use several threads, which wait for each other: open it with threads = 1";
  }
  std::string why = asks_for_memory(program);
  return why.empty() && native ? may_compile(program, *native) : why;
}

}  // namespace treadle::run
