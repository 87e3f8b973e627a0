#include <fmt/format.h>

#include "plan/program.h"

namespace treadle::plan {

namespace {

std::string_view storage_name(Storage s) {
  static constexpr std::string_view kNames[] = {"null", "constant", "input", "output", "arena", "pointer", "handle"};
  return kNames[static_cast<size_t>(s)];
}

std::string slots_text(const std::vector<uint32_t>& slots) {
  std::string text;
  for (uint32_t s : slots)
    text += (text.empty() ? "" : " ") + (s == kNoSlot ? std::string("-") : fmt::format("s{}", s));
  return text;
}

std::string loop_text(const Loop& loop) {
  std::string text = loop.simple ? " simple" : "";
  for (const LoopState& s : loop.states) {
    text +=
        fmt::format(" state(s{} -> s{}, s{} -> s{}{})", s.initial, s.in, s.out, s.final, s.planned ? "" : ", handle");
  }
  for (const ScanInput& s : loop.scan_inputs) {
    text += fmt::format(" in(s{} of s{}{})", s.element, s.whole, s.planned ? "" : ", handle");
  }
  for (const ScanOutput& s : loop.scan_outputs) {
    text += fmt::format(" out(s{} to s{}{}{})", s.element, s.whole, s.row == s.element ? ", in place" : "",
                        s.whole_planned ? "" : ", grows");
  }
  return text;
}

std::string wave_text(const Wave& wave) {
  std::string text = fmt::format(" {} trips by {}", wave.trips, wave.block);
  for (size_t i = 0; i < wave.stages.size(); ++i) {
    const WaveStage& stage = wave.stages[i];
    text += fmt::format(" {}(", i);
    for (const RowKernel& kernel : stage.kernels) text += fmt::format("rows of {} ", kernel.at);
    text += stage.loop == WaveStage::kNoLoop ? "" : fmt::format("loop {}", stage.loop);
    for (const WaveStage::Need& need : stage.needs)
      text += fmt::format(" after {}{}", need.all ? "all of " : "", need.stage);
    text += ")";
  }
  return text;
}

// The nodes that an instruction stands for.
std::string members_text(const Program& p, size_t at) {
  std::string text;
  for (const ir::Node* member : p.fused.at(static_cast<uint32_t>(at)).nodes) {
    text += fmt::format(" {} {}", member->op->name, member->name);
  }
  return text;
}

std::string instruction_text(const Program& p, size_t at) {
  const Instruction& in = p.code[at];
  const ir::Node* node = p.node_of[at];
  const std::string name = node ? fmt::format("{} {}", node->op->name, node->name) : "";
  switch (in.code) {
    case OpCode::kKernel: {
      std::string text = "kernel  " + name + " (";
      if (p.fused.contains(static_cast<uint32_t>(at))) text = "fused  " + members_text(p, at) + " (";
      for (uint32_t i = 0; i < in.index; ++i) text += (i ? " " : "") + fmt::format("s{}", in.operands[i]);
      return text + ")";
    }
    case OpCode::kGuarded:
    case OpCode::kCompute:
      return fmt::format("{} {} ({}) -> ({})", in.code == OpCode::kGuarded ? "guarded" : "compute", name,
                         slots_text(p.dynamic[in.index].inputs), slots_text(p.dynamic[in.index].outputs));
    case OpCode::kCopy:
      return fmt::format("copy    s{} -> s{} ({} bytes)", p.copies[in.index].from, p.copies[in.index].to,
                         p.copies[in.index].bytes);
    case OpCode::kRow:
      return fmt::format("row     {} s{}[s{}] -> s{}", name, p.rows[in.index].from, p.rows[in.index].index,
                         p.rows[in.index].to);
    case OpCode::kMove:
      return fmt::format("move    s{} -> s{}", p.moves[in.index].first, p.moves[in.index].second);
    case OpCode::kJump:
      return fmt::format("jump    {}", in.target);
    case OpCode::kBranchUnless:
      return fmt::format("unless  s{} jump {}", in.operands[0], in.target);
    case OpCode::kLoopBegin:
      return fmt::format("loop    {} {}{}", in.index, name, loop_text(p.loops[in.index]));
    case OpCode::kLoopNext:
    case OpCode::kLoopNextSimple:
      return fmt::format("next    {} -> {}", in.index, in.target);
    case OpCode::kLoopEnd:
      return fmt::format("endloop {}", in.index);
    case OpCode::kPoll:
      return "poll";
    case OpCode::kWave:
      return fmt::format("wave    {}{}", in.index, wave_text(p.waves[in.index]));
    case OpCode::kWaveEnd:
      return fmt::format("endwave {}", in.index);
    case OpCode::kInBlocks:
      return fmt::format("blocks  of loop {} {}", in.index, name);
    case OpCode::kEnd:
      return "end";
  }
  return "?";
}

}  // namespace

std::string print(const Program& program) {
  std::string text = fmt::format("arena {} bytes\n", program.arena_bytes);
  for (size_t i = 1; i < program.slots.size(); ++i) {
    const Slot& s = program.slots[i];
    text += fmt::format("s{}: {} {}", i, storage_name(s.storage), s.type.to_string());
    if (s.storage == Storage::kArena) text += fmt::format(" @{} live {}-{}", s.offset, s.first, s.last);
    text += "\n";
  }
  for (size_t i = 0; i < program.code.size(); ++i) text += fmt::format("{:4} {}\n", i, instruction_text(program, i));
  return text;
}

}  // namespace treadle::plan
