// Five checks; each relies on the checks before it: the code (indices, targets, the instructions of loops and
// pipelines), the roles of operands, the order of writes and reads, the offsets in memory, and the code that native
// code gets for kernels.
#include "plan/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "plan/kernel_code.h"
#include "plan/roles.h"

namespace treadle::plan {

namespace {

bool is_planned(Storage storage) {
  return storage == Storage::kArena || storage == Storage::kOutput;
}

class Verifier {
 public:
  explicit Verifier(const Program& program) : p_(program) {}

  Status run() {
    TREADLE_TRY(check_code());
    TREADLE_TRY(check_operands());
    TREADLE_TRY(check_order());
    TREADLE_TRY(check_memory());
    return check_kernel_codes();
  }

 private:
  template <class... Args>
  Status broken(uint32_t at, fmt::format_string<Args...> rule, Args&&... args) const {
    return error(Code::kInternal, "instruction {} ({}): {}", at, info(p_.code[at].code).name,
                 fmt::format(rule, std::forward<Args>(args)...));
  }
  template <class... Args>
  Status broken(uint32_t at, const SlotUse& use, fmt::format_string<Args...> rule, Args&&... args) const {
    return error(Code::kInternal, "instruction {} ({}), {}{}: s{} {}", at, info(p_.code[at].code).name, use.name,
                 use.number > 0 ? fmt::format(" {}", use.number) : "", use.slot,
                 fmt::format(rule, std::forward<Args>(args)...));
  }

  // --- the code

  Status check_code() const {
    if (p_.code.empty() || p_.code.back().code != OpCode::kEnd) {
      return error(Code::kInternal, "the last instruction is not the end of the program");
    }
    if (p_.node_of.size() != p_.code.size()) {
      return error(Code::kInternal, "{} instructions, but nodes of {}", p_.code.size(), p_.node_of.size());
    }
    for (uint32_t at = 0; at < p_.code.size(); ++at) {
      const Instruction& in = p_.code[at];
      const size_t records = record_count(p_, info(in.code).index);
      if (in.index >= records) return broken(at, "index {} of {}", in.index, records);
      if (jumps(in.code) && in.target >= p_.code.size()) return broken(at, "target {} is behind the end", in.target);
      if (const KernelCall* call = kernel_of(p_, at)) TREADLE_TRY(check_call(at, in, *call));
    }
    for (uint32_t i = 0; i < p_.loops.size(); ++i) TREADLE_TRY(check_loop(i));
    for (uint32_t i = 0; i < p_.pipelines.size(); ++i) TREADLE_TRY(check_pipeline(i));
    return {};
  }

  Status check_call(uint32_t at, const Instruction& in, const KernelCall& call) const {
    if (!p_.node_of[at]) return broken(at, "a kernel of no node");
    if (call.operands.size() < call.inputs + call.outputs + call.kept) {
      return broken(at, "{} operands for {} inputs, {} outputs and {} kept", call.operands.size(), call.inputs,
                    call.outputs, call.kept);
    }
    const bool is_bound = in.run && in.run == call.kernel.run && in.state == call.kernel.state;
    if (!is_bound) return broken(at, "it runs another kernel than its record says");
    if (!std::equal(call.operands.begin(), call.operands.end(), in.operands)) {
      return broken(at, "its operands are not those of its record");
    }
    return {};
  }

  bool is(uint32_t at, OpCode code, uint32_t index) const {
    return at < p_.code.size() && p_.code[at].code == code && p_.code[at].index == index;
  }

  Status check_loop(uint32_t index) const {
    const Loop& loop = p_.loops[index];
    const OpCode next = loop.step.simple ? OpCode::kLoopNextSimple : OpCode::kLoopNext;
    if (!is(loop.first, OpCode::kLoopBegin, index)) {
      return error(Code::kInternal, "loop {}: instruction {} does not begin it", index, loop.first);
    }
    if (loop.last < loop.first + 2 || !is(loop.last, OpCode::kLoopEnd, index)) {
      return broken(loop.first, "instruction {} does not end the loop", loop.last);
    }
    if (!is(loop.last - 1, next, index)) return broken(loop.last - 1, "it is not the back edge of the loop before it");
    if (p_.code[loop.first].target != loop.last)
      return broken(loop.first, "without iterations, it goes on inside the loop");
    if (p_.code[loop.last - 1].target != loop.first + 1)
      return broken(loop.last - 1, "iterations begin inside the body");
    for (uint32_t inner = index + 1; inner < p_.loops.size(); ++inner) {
      const Loop& other = p_.loops[inner];
      const bool apart = other.first > loop.last || other.last < loop.first;
      const bool inside = other.first > loop.first && other.last < loop.last - 1;
      if (!apart && !inside) return broken(loop.first, "it crosses loop {}", inner);
    }
    for (uint32_t at = loop.first + 1; at < loop.last - 1; ++at) {
      const uint32_t target = p_.code[at].target;
      if (jumps(p_.code[at].code) && (target <= loop.first || target >= loop.last)) {
        return broken(at, "it leaves the loop");
      }
    }
    for (const RowKernel& rows : loop.schedule.strips.kernels) {
      if (!is(rows.at, OpCode::kInStrips, index))
        return broken(loop.first, "instruction {} is not in its strips", rows.at);
    }
    return {};
  }

  Status check_pipeline(uint32_t index) const {
    const Pipeline& pipeline = p_.pipelines[index];
    if (!is(pipeline.first, OpCode::kPipeline, index)) {
      return error(Code::kInternal, "pipeline {}: instruction {} does not begin it", index, pipeline.first);
    }
    if (!is(pipeline.last, OpCode::kPipelineEnd, index) || p_.code[pipeline.first].target != pipeline.last) {
      return broken(pipeline.first, "instruction {} does not end the pipeline", pipeline.last);
    }
    const auto inside = [&](uint32_t at) { return at > pipeline.first && at < pipeline.last; };
    for (const auto* list : {&pipeline.before, &pipeline.after}) {
      for (const uint32_t at : *list) {
        if (!inside(at)) return broken(pipeline.first, "instruction {} is none of its own", at);
      }
    }
    for (uint32_t s = 0; s < pipeline.stages.size(); ++s) {
      const PipelineStage& stage = pipeline.stages[s];
      const bool has_loop = stage.loop != PipelineStage::kNoLoop;
      if (has_loop && (stage.loop >= p_.loops.size() || !inside(p_.loops[stage.loop].first))) {
        return broken(pipeline.first, "loop {} of stage {} is none of its own", stage.loop, s);
      }
      for (const RowKernel& rows : stage.kernels) {
        if (!inside(rows.at))
          return broken(pipeline.first, "instruction {} of stage {} is none of its own", rows.at, s);
      }
      for (const PipelineStage::Need& need : stage.needs) {
        if (need.stage >= s) return broken(pipeline.first, "stage {} waits for stage {}", s, need.stage);
      }
    }
    return {};
  }

  // --- operands

  // Calls `f(at, use)` for every operand of the program, in the order of a run. Stops at an error.
  template <class F>
  Status for_each_use(F&& f) const {
    Status status;
    for (uint32_t at = 0; at < p_.code.size() && status.ok(); ++at) {
      const auto one = [&](const SlotUse& use) {
        if (status.ok()) status = f(at, use);
      };
      if (const Instruction& in = p_.code[at]; info(in.code).index == IndexOf::kLoop) {
        for_each_slot(p_.loops[in.index].schedule.strips, one);
      }
      for_each_slot(p_, at, one);
    }
    return status;
  }

  Status check_operands() const {
    return for_each_use([this](uint32_t at, const SlotUse& use) -> Status {
      if (use.slot >= p_.slots.size()) return broken(at, use, "is behind the last slot, s{}", p_.slots.size() - 1);
      if (use.slot == kNoSlot) return {};
      return check_role(at, use, p_.slots[use.slot].storage);
    });
  }

  Status check_role(uint32_t at, const SlotUse& use, Storage storage) const {
    const bool is_handle = storage == Storage::kHandle;
    const bool is_made = writes(use.role) || use.role == Role::kWritesRows || use.role == Role::kCarries;
    if (storage == Storage::kNull) return broken(at, use, "has no place");
    if (is_made && storage == Storage::kConstant) return broken(at, use, "is a constant, which nothing may write");
    if (is_made && storage == Storage::kInput) return broken(at, use, "is an input, which nothing may write");
    switch (use.role) {
      case Role::kWritesValue:
        return is_handle ? Status() : broken(at, use, "is no handle");
      case Role::kScratch:
        return storage == Storage::kArena || storage == Storage::kConstant
                   ? Status()
                   : broken(at, use, "is no memory of the arena");
      case Role::kKeeps:
        return storage == Storage::kArena ? Status() : broken(at, use, "is no memory of the arena");
      case Role::kWrites:
        // No instruction has prepared a handle's memory for a kernel.
        return is_handle && p_.code[at].code == OpCode::kKernel ? broken(at, use, "is a handle") : Status();
      case Role::kPoints:
        return storage == Storage::kPointer || is_handle ? Status() : broken(at, use, "is no pointer");
      case Role::kReadsRows:
        return is_handle && p_.code[at].code == OpCode::kRow ? broken(at, use, "may move while a pointer leads there")
                                                             : Status();
      default:
        return {};
    }
  }

  // --- order

  // The instruction that makes this use: some uses of a loop's first instruction happen at its back edge or its end.
  uint32_t instruction_of(uint32_t at, const SlotUse& use) const {
    const Instruction& in = p_.code[at];
    if (info(in.code).index != IndexOf::kLoop) return at;
    const uint32_t last = p_.loops[in.index].last;
    if (use.when == When::kEnd) return last;
    return use.when == When::kBackEdge || use.role == Role::kHandsOn ? last - 1 : at;
  }

  Status check_order() const {
    std::vector<bool> is_written = written_before_run();
    struct Due {
      uint32_t at;
      SlotUse use;
    };
    std::multimap<uint32_t, Due> due;  // by the instruction that makes the use
    TREADLE_TRY(for_each_use([&](uint32_t at, const SlotUse& use) -> Status {
      // A pipeline's own instructions make its uses.
      if (info(p_.code[at].code).index != IndexOf::kPipeline) due.emplace(instruction_of(at, use), Due{at, use});
      return {};
    }));
    for (const auto& [executes_at, one] : due) {
      const auto& [at, use] = one;
      const bool is_read = use.role == Role::kReads || use.role == Role::kReadsValue || use.role == Role::kReadsRows ||
                           use.role == Role::kHandsOn;
      if (is_read && !is_written[use.slot]) return broken(at, use, "is read before anything writes it");
      is_written[use.slot] = true;
    }
    for (const Output& output : p_.outputs) {
      if (!is_written[output.slot]) return error(Code::kInternal, "nothing writes the output in s{}", output.slot);
    }
    return {};
  }

  std::vector<bool> written_before_run() const {
    std::vector<bool> is_written(p_.slots.size());
    is_written[kNoSlot] = true;
    for (size_t s = 0; s < p_.slots.size(); ++s) {
      const Storage storage = p_.slots[s].storage;
      if (storage == Storage::kConstant || storage == Storage::kInput) is_written[s] = true;
    }
    for (const Input& input : p_.inputs) is_written[input.slot] = true;
    return is_written;
  }

  // --- memory

  Status check_memory() const {
    TREADLE_TRY(for_each_use([this](uint32_t at, const SlotUse& use) -> Status {
      const Slot& slot = p_.slots[use.slot];
      const bool is_placed = slot.storage == Storage::kArena || slot.storage == Storage::kHandle;
      const uint32_t executes_at = instruction_of(at, use);
      if (is_placed && (executes_at < slot.first || executes_at > slot.last)) {
        return broken(at, use, "lives from {} to {} only", slot.first, slot.last);
      }
      if (use.role == Role::kKeeps && (slot.first > 0 || slot.last + 1 < p_.code.size())) {
        return broken(at, use, "is kept, but lives from {} to {} only", slot.first, slot.last);
      }
      return {};
    }));
    for (uint32_t at = 0; at < p_.code.size(); ++at) TREADLE_TRY(check_sizes(at));
    return check_overlaps();
  }

  Status check_bytes(uint32_t at, uint32_t s, size_t bytes) const {
    const Slot& slot = p_.slots[s];
    if (is_planned(slot.storage) && bytes > slot.bytes) {
      return broken(at, "{} bytes of s{}, which has {}", bytes, s, slot.bytes);
    }
    return {};
  }

  Status check_sizes(uint32_t at) const {
    const Instruction& in = p_.code[at];
    if (in.code == OpCode::kCopy) {
      const Copy& copy = p_.copies[in.index];
      TREADLE_TRY(check_bytes(at, copy.from, copy.bytes));
      return check_bytes(at, copy.to, copy.bytes);
    }
    if (in.code == OpCode::kRow) {
      const Row& row = p_.rows[in.index];
      return check_bytes(at, row.from, static_cast<size_t>(row.count) * row.bytes);
    }
    if (in.code != OpCode::kLoopBegin) return {};
    const Loop& loop = p_.loops[in.index];
    for (const LoopState& state : loop.states) {
      if (!state.planned) continue;
      for (const uint32_t s : {state.initial, state.in, state.out, state.final}) {
        TREADLE_TRY(check_bytes(at, s, state.bytes));
      }
      if (p_.slots[state.in].bytes != p_.slots[state.out].bytes) {
        return broken(at, "s{} and s{} change places, but have {} and {} bytes", state.in, state.out,
                      p_.slots[state.in].bytes, p_.slots[state.out].bytes);
      }
    }
    return {};
  }

  Status check_overlaps() const {
    std::vector<uint32_t> order;
    for (uint32_t s = 1; s < p_.slots.size(); ++s) {
      const Slot& slot = p_.slots[s];
      if (slot.storage != Storage::kArena || slot.first == UINT32_MAX) continue;
      if (slot.offset + slot.bytes > p_.arena_bytes) {
        return error(Code::kInternal, "s{} ends behind the arena, which has {} bytes", s, p_.arena_bytes);
      }
      if (slot.bytes > 0) order.push_back(s);
    }
    std::sort(order.begin(), order.end(),
              [this](uint32_t a, uint32_t b) { return p_.slots[a].first < p_.slots[b].first; });
    std::map<size_t, uint32_t> alive;       // by offset
    std::multimap<uint32_t, size_t> until;  // last instruction -> offset
    for (const uint32_t s : order) {
      const Slot& slot = p_.slots[s];
      while (!until.empty() && until.begin()->first < slot.first) {
        alive.erase(until.begin()->second);
        until.erase(until.begin());
      }
      const auto next = alive.lower_bound(slot.offset);
      if (next != alive.end() && next->first < slot.offset + slot.bytes) return overlap(s, next->second);
      if (next != alive.begin()) {
        const uint32_t before = std::prev(next)->second;
        if (p_.slots[before].offset + p_.slots[before].bytes > slot.offset) return overlap(s, before);
      }
      alive.emplace(slot.offset, s);
      until.emplace(slot.last, slot.offset);
    }
    return {};
  }

  Status overlap(uint32_t a, uint32_t b) const {
    return broken(p_.slots[a].first, "s{} and s{} are alive, and share memory", b, a);
  }

  // --- kernels

  Status check_kernel_codes() const {
    for (uint32_t at = 0; at < p_.code.size(); ++at) {
      const KernelCall* call = kernel_of(p_, at);
      if (!call || !call->code) continue;
      const auto end = call->operands.begin() + call->inputs + call->outputs;
      for (const uint32_t s : slots_of(*call->code)) {
        if (s != kNoSlot && std::find(call->operands.begin(), end, s) == end) {
          return broken(at, "native code is told of s{}, which is no operand", s);
        }
      }
    }
    return {};
  }

  const Program& p_;
};

}  // namespace

Status verify(const Program& program) {
  return Verifier(program).run();
}

}  // namespace treadle::plan
