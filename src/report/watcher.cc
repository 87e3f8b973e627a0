#include "report/watcher.h"

#include <algorithm>
#include <cstring>

#include "plan/planner.h"
#include "run/frame.h"
#include "run/loops.h"
#include "run/profile.h"

namespace treadle::report {

using kernels::Statistics;
using plan::OpCode;
using plan::Storage;
using run::Write;

Statistics statistics_of(const Tensor& tensor) {
  if (kernels::has_statistics(tensor.type())) {
    return kernels::statistics_of(tensor.type(), tensor.raw(), tensor.element_count());
  }
  Statistics texts;
  texts.count = tensor.element_count();
  return texts;
}

namespace {

Statistics statistics_of_value(const AnyValue& value) {
  Statistics all;
  switch (value.kind()) {
    case AnyValue::Kind::kTensor:
      all = report::statistics_of(value.tensor());
      break;
    case AnyValue::Kind::kSequence:
      for (const AnyValue& element : value.sequence().elements()) all.add(statistics_of_value(element));
      break;
    case AnyValue::Kind::kOptional:
      if (value.optional().value) all = statistics_of_value(*value.optional().value);
      break;
    case AnyValue::Kind::kMap:
      all = report::statistics_of(value.map().values);
      break;
    case AnyValue::Kind::kNone:
      break;
  }
  return all;
}

bool is_edge(OpCode code) {
  return code == OpCode::kLoopBegin || code == OpCode::kLoopNext || code == OpCode::kLoopNextSimple;
}

// Whether the instruction makes a sequence of a sequence and an element more. Then its statistics are those of both, so
// that a loop that collects elements does not look at all of them again and again.
bool adds_element(const plan::Program& program, uint32_t pc) {
  const ir::Node* const node = program.node_of[pc];
  return node && node->op->updates && node->outputs[0] && node->outputs[0]->type.kind == Type::Kind::kSequence;
}

}  // namespace

void Watcher::begin(const plan::Program& program, const run::Frame& frame, const run::Loops& loops) {
  frame_ = &frame;
  loops_ = &loops;
  is_complete_ = false;
  instructions_ = 0;
  if (program_ != &program) {
    program_ = &program;
    prepare();
  }
  seen_.assign(program.slots.size(), {});
  iterations_.assign(program.loops.size(), 0);
  for (uint32_t s = 0; s < program.slots.size(); ++s) {
    if (program.slots[s].storage == Storage::kConstant && wanted_[s]) seen_[s].statistics = statistics_of(s);
  }
  for (const plan::Input& input : program.inputs) {
    if (input.slot != plan::kNoSlot && wanted_[input.slot]) seen_[input.slot].statistics = statistics_of(input.slot);
  }
  for (Listener* listener : listeners_) listener->begin(*this);
}

void Watcher::prepare() {
  const plan::Program& p = *program_;
  writes_ = std::make_unique<run::Writes>(p);
  loop_of_ = run::innermost_loops(p);
  parent_.clear();
  depth_.clear();
  for (const plan::Loop& loop : p.loops) {
    const int around = loop_of_[loop.first];
    parent_.push_back(around);
    depth_.push_back(around < 0 ? 0 : depth_[static_cast<size_t>(around)] + 1);
  }
  counts_.assign(p.slots.size(), 0);
  for (size_t s = 0; s < p.slots.size(); ++s) {
    if (plan::is_fixed(p.slots[s].type)) counts_[s] = known_element_count(p.slots[s].type.shape);
  }
  only_computes_.assign(p.code.size(), false);
  for (uint32_t pc = 0; pc < p.code.size(); ++pc) {
    const std::span<const Write> writes = writes_->of(pc, UINT32_MAX);
    only_computes_[pc] = !is_edge(p.code[pc].code) && !adds_element(p, pc) &&
                         std::all_of(writes.begin(), writes.end(), [](const Write& write) {
                           return write.how == Write::How::kComputes && write.from == plan::kNoSlot;
                         });
  }
  find_wanted();
}

// Statistics of rows and of states are those of the slots from which they are taken.
void Watcher::find_wanted() {
  const plan::Program& p = *program_;
  wanted_.assign(p.slots.size(), false);
  for (const Listener* listener : listeners_) listener->want(p, wanted_);
  for (bool again = true; again;) {
    again = false;
    const auto want = [&](uint32_t slot) {
      again |= !wanted_[slot];
      wanted_[slot] = true;
    };
    for (uint32_t pc = 0; pc < p.code.size(); ++pc) {
      for (const Write& write : writes_->of(pc, UINT32_MAX)) {
        if (!wanted_[write.slot]) continue;
        if (write.how == Write::How::kTakes || write.how == Write::How::kAdds) want(write.from);
        if (write.how != Write::How::kComputes || !adds_element(p, pc)) continue;
        for (const uint32_t slot : reads(pc).first(2)) want(slot);
      }
    }
  }
}

Status Watcher::ran(uint32_t pc, uint32_t next) {
  ++instructions_;
  TREADLE_TRY(wrote(pc, next));
  if (program_->code[next].code != OpCode::kEnd) return {};
  is_complete_ = true;
  for (Listener* listener : listeners_) listener->finish(*this);
  return {};
}

Status Watcher::wrote(uint32_t pc, uint32_t next) {
  const std::span<const Write> writes = writes_->of(pc, next);
  if (only_computes_[pc]) return computed_all(writes, pc);
  const bool edge = is_edge(program_->code[pc].code);
  if (edge) TREADLE_TRY(write_rows(writes, pc));
  if (edge && writes_->enters(pc, next)) {
    const uint32_t loop = program_->code[pc].index;
    iterations_[loop] = (*loops_)[loop].iteration;
  }
  return writes.empty() ? Status() : write_values(writes, pc, next);
}

Status Watcher::computed_all(std::span<const Write> writes, uint32_t pc) {
  for (const Write& write : writes) {
    Seen& seen = seen_[write.slot];
    if (wanted_[write.slot]) seen.statistics = statistics_of(write.slot);
    seen.pc = pc;
    seen.iteration = iteration_at(pc);
    TREADLE_TRY(tell(write, pc, true));
  }
  return {};
}

// Rows belong to the iteration that ends.
Status Watcher::write_rows(std::span<const Write> writes, uint32_t pc) {
  for (const Write& write : writes) {
    if (write.how == Write::How::kEmpties) {
      seen_[write.slot] = {};
    } else if (write.how == Write::How::kAdds) {
      seen_[write.slot].statistics.add(seen_[write.from].statistics);
      TREADLE_TRY(tell(write, pc, false));
    }
  }
  return {};
}

Status Watcher::write_values(std::span<const Write> writes, uint32_t pc, uint32_t next) {
  taken_.clear();
  for (const Write& write : writes) {
    if (write.how == Write::How::kTakes) taken_.push_back(seen_[write.from]);
  }
  const bool enters = writes_->enters(pc, next);
  const uint32_t at = enters ? next : pc;
  const bool is_value = enters || !is_edge(program_->code[pc].code);
  size_t next_taken = 0;
  for (const Write& write : writes) {
    if (write.how == Write::How::kTakes) {
      seen_[write.slot] = std::move(taken_[next_taken++]);
    } else if (write.how == Write::How::kComputes) {
      Seen& seen = seen_[write.slot];
      if (wanted_[write.slot]) seen.statistics = computed(write, at);
      if (write.from != plan::kNoSlot) {
        seen.pc = seen_[write.from].pc;
        seen.iteration = seen_[write.from].iteration;
      } else {
        seen.pc = at;
        seen.iteration = iteration_at(at);
      }
    } else {
      continue;
    }
    TREADLE_TRY(tell(write, at, is_value));
  }
  return {};
}

Statistics Watcher::computed(const Write& write, uint32_t pc) const {
  if (write.from != plan::kNoSlot || !adds_element(*program_, pc)) return statistics_of(write.slot);
  const std::span<const uint32_t> parts = reads(pc);
  Statistics all = seen_[parts[0]].statistics;
  all.add(seen_[parts[1]].statistics);
  return all;
}

Status Watcher::tell(const Write& write, uint32_t pc, bool is_value) {
  for (Listener* listener : listeners_) TREADLE_TRY(listener->wrote(*this, write, pc, is_value));
  return {};
}

void Watcher::end() {
  frame_ = nullptr;
  loops_ = nullptr;
}

std::vector<uint32_t> Watcher::loops_around(uint32_t pc) const {
  std::vector<uint32_t> loops;
  for (int loop = loop_of_[pc]; loop >= 0; loop = parent_[static_cast<size_t>(loop)]) {
    loops.insert(loops.begin(), static_cast<uint32_t>(loop));
  }
  return loops;
}

void Watcher::iterations_around(uint32_t pc, std::span<int64_t> iterations) const {
  for (int at = loop_of_[pc]; at >= 0; at = parent_[static_cast<size_t>(at)]) {
    const auto loop = static_cast<size_t>(at);
    if (depth_[loop] < iterations.size()) iterations[depth_[loop]] = iterations_[loop];
  }
}

Watcher::Elements Watcher::elements_of(uint32_t slot) const {
  if (frame_->is_handle(slot)) {
    const AnyValue& value = frame_->handle(slot);
    if (!value.is_tensor() || !kernels::has_statistics(value.tensor().type())) return {};
    const Tensor& tensor = value.tensor();
    return {tensor.raw(), tensor.type(), tensor.dims(), tensor.element_count()};
  }
  const Type& type = program_->slots[slot].type;
  if (!plan::is_fixed(type)) return {};
  return {frame_->address(slot), type.element, known_dims(type.shape), counts_[slot]};
}

Statistics Watcher::statistics_of(uint32_t slot) const {
  if (frame_->is_handle(slot)) return statistics_of_value(frame_->handle(slot));
  const ElementType type = program_->slots[slot].type.element;
  if (counts_[slot] == 1 && type == ElementType::kFloat) {
    return kernels::statistics_of(*static_cast<const float*>(frame_->address(slot)));
  }
  if (program_->slots[slot].storage == Storage::kConstant) {
    return report::statistics_of(program_->slots[slot].constant);
  }
  return kernels::statistics_of(type, frame_->address(slot), counts_[slot]);
}

Result<AnyValue> Watcher::copy_of(uint32_t slot, const Type& type) const {
  if (program_->slots[slot].storage == Storage::kConstant) return AnyValue(program_->slots[slot].constant);
  if (frame_->is_handle(slot) && !frame_->handle(slot).is_tensor()) return frame_->handle(slot);
  if (frame_->is_handle(slot) && is_string(frame_->handle(slot).tensor().type())) return frame_->handle(slot);
  Elements from = elements_of(slot);
  if (!frame_->is_handle(slot) && plan::is_fixed(type)) from.dims = known_dims(type.shape);
  TREADLE_ASSIGN(Tensor copy, Tensor::allocate(from.type, from.dims));
  if (from.count > 0) std::memcpy(copy.mutable_raw(), from.data, copy.byte_size());
  return AnyValue(std::move(copy));
}

}  // namespace treadle::report
