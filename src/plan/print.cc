#include <fmt/format.h>

#include "plan/roles.h"

namespace treadle::plan {

namespace {

std::string_view storage_name(Storage s) {
  static constexpr std::string_view kNames[] = {"null", "constant", "input", "output", "arena", "pointer", "handle"};
  return kNames[static_cast<size_t>(s)];
}

std::string text(const Loop& loop) {
  std::string made = loop.step.simple ? " simple" : "";
  for (const LoopState& s : loop.states) {
    made +=
        fmt::format(" state(s{} -> s{}, s{} -> s{}{})", s.initial, s.in, s.out, s.final, s.planned ? "" : ", handle");
  }
  for (const ScanInput& s : loop.scan_inputs) {
    made += fmt::format(" in(s{} of s{}{})", s.element, s.whole, s.planned ? "" : ", handle");
  }
  for (const ScanOutput& s : loop.scan_outputs) {
    made += fmt::format(" out(s{} to s{}{}{})", s.element, s.whole, s.row == s.element ? ", in place" : "",
                        s.whole_planned ? "" : ", grows");
  }
  return made;
}

std::string text(const Pipeline& pipeline) {
  std::string made = fmt::format(" {} iterations by {}", pipeline.iterations, pipeline.strip);
  for (size_t i = 0; i < pipeline.stages.size(); ++i) {
    const PipelineStage& stage = pipeline.stages[i];
    made += fmt::format(" {}(", i);
    for (const RowKernel& kernel : stage.kernels) made += fmt::format("rows of {} ", kernel.at);
    made += stage.loop == PipelineStage::kNoLoop ? "" : fmt::format("loop {}", stage.loop);
    for (const PipelineStage::Need& need : stage.needs)
      made += fmt::format(" after {}{}", need.all ? "all of " : "", need.stage);
    made += ")";
  }
  return made;
}

// Prints the operands that the instruction reads, an arrow, the operands that it writes, and its numbers.
struct Text : RecordVisitor {
  void slot(const SlotUse& use) {
    const bool is_own = use.role == Role::kScratch || use.role == Role::kKeeps;
    const bool is_made = writes(use.role) || use.role == Role::kPoints || is_own;
    std::string& list = is_made ? made : read;
    list += use.slot == kNoSlot ? " -" : fmt::format(" s{}", use.slot);
  }
  template <class T>
  void number(const char* name, T value) {
    numbers += fmt::format("{}{} {}", numbers.empty() ? "" : ", ", name, static_cast<int64_t>(value));
  }
  std::string read, made, numbers;
};

template <class Record>
std::string text(const Record& record) {
  Text of;
  describe(record, of);
  const bool has_numbers = !of.numbers.empty() && !std::is_same_v<Record, KernelCall>;
  return fmt::format("{}{}{}{}", of.read, of.made.empty() ? "" : " ->", of.made,
                     has_numbers ? " (" + of.numbers + ")" : "");
}

std::string instruction_text(const Program& p, uint32_t at) {
  const Instruction& in = p.code[at];
  const auto& [name, index, flow] = info(in.code);
  const auto nodes = nodes_of(p, at);
  std::string line = fmt::format("{:<7}", nodes.size() > 1 ? "fused" : name);
  const bool is_of = index == IndexOf::kLoopOf || index == IndexOf::kPipelineOf;
  if (is_of || index == IndexOf::kLoop || index == IndexOf::kPipeline) line += fmt::format(" {}", in.index);
  for (const ir::Node* node : nodes) line += fmt::format(" {} {}", node->op->name, node->name);
  if (const std::string_view method = method_of(p, at); !method.empty()) line += fmt::format(" by {}", method);
  line += with_record(p, in, [](const auto& record) { return text(record); });
  if (jumps(in.code)) line += fmt::format(" jump {}", in.target);
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
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
  for (uint32_t i = 0; i < program.code.size(); ++i) text += fmt::format("{:4} {}\n", i, instruction_text(program, i));
  return text;
}

}  // namespace treadle::plan
