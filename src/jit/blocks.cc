// Loops whose trips are elementwise over long states, and nothing else: what happens to an element depends on no other.
// They run block by block: a few vectors of each state stay in registers for many trips, then the next block follows.
// That is one pass over memory for all these trips instead of one for each.
//
// Trips are counted as ever: a pass takes as many as may run before limits are looked at again.
#include <algorithm>

#include "jit/loop_writer.h"

namespace treadle::jit {

using kernels::ElementwiseOp;
using plan::ElementwiseCode;
using plan::Instruction;
using plan::kNoSlot;
using plan::Loop;
using plan::LoopState;
using plan::OpCode;

namespace {

using Spread = ElementwiseCode::Spread;

bool can_fail(const ElementwiseCode::Step& step) {
  const bool divides =
      step.op == ElementwiseOp::kDiv || step.op == ElementwiseOp::kMod || step.op == ElementwiseOp::kFmod;
  return !step.converts && divides && !is_float(step.from);
}

// Elements stay where they are, or one goes to all.
bool keeps_places(const ElementwiseCode& code) {
  return std::none_of(code.inputs.begin(), code.inputs.end(),
                      [](const auto& in) { return in.spread == Spread::kOther; });
}

int64_t width_of(ElementType type) {
  return static_cast<int64_t>(byte_width(compute_type(type)));
}

}  // namespace

bool LoopWriter::runs_in_blocks(uint32_t index) const {
  const Loop& loop = p_.loops[index];
  if (!layout_.inline_loop[index] || loop.go_on != kNoSlot || loop.states.empty() || !loop.scan_inputs.empty() ||
      !loop.scan_outputs.empty()) {
    return false;
  }
  int64_t count = 0;
  std::vector<uint32_t> made;
  for (const LoopState& state : loop.states) made.push_back(state.in);
  for (uint32_t pc = loop.first + 1; pc + 1 < loop.last; ++pc) {
    const auto* code = request_.elementwise(pc);
    if (!code || layout_.written[pc - loop_.first] != Written::kInline) return false;
    if (count == 0) count = code->count;
    if (code->count != count || !keeps_places(*code)) return false;
    if (std::any_of(code->steps.begin(), code->steps.end(), can_fail)) return false;
    for (const auto& out : code->outputs) made.push_back(out.slot);
  }
  return !chunks_.is_short(count) && std::all_of(loop.states.begin(), loop.states.end(), [&](const LoopState& state) {
    const auto bytes = static_cast<int64_t>(state.bytes);
    return bytes == count * width_of(p_.slots[state.in].type.element) &&
           std::ranges::find(made, state.out) != made.end();
  });
}

void LoopWriter::write_blocks(uint32_t index) {
  const Loop& loop = p_.loops[index];
  int64_t vectors = layout_.forms.tiles.at(loop.first + 1);  // of each state
  for (uint32_t pc = loop.first + 2; pc + 1 < loop.last; ++pc) {
    vectors = std::min(vectors, layout_.forms.tiles.at(pc));
  }
  const int64_t count = request_.elementwise(loop.first + 1)->count;
  const int64_t size = std::min(count, vectors * chunks_.full), blocks = count / size, rest = count % size;
  auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
  Block* pass = Block::Create(b_.getContext(), "pass", function_, exit_);
  Block* more = Block::Create(b_.getContext(), "more", function_, exit_);
  Block* done = Block::Create(b_.getContext(), "done", function_, exit_);
  b_.CreateBr(pass);
  b_.SetInsertPoint(pass);
  // The first trip of the pass has been counted.
  Value* first = get(trip_[index]);
  Value* granted = b_.CreateAdd(b_.CreateSDiv(get(units_), number(loop.schedule.weight)), number(1));
  Value* left = b_.CreateSub(get(trips_[index]), first);
  Value* trips = b_.CreateSelect(b_.CreateICmpSLT(left, granted), left, granted);
  count_to(blocks, [&](Value* i) { write_block(loop, b_.CreateMul(i, number(size)), size, first, trips); });
  if (rest > 0) write_block(loop, number(blocks * size), rest, first, trips);
  Value* uncounted = b_.CreateSub(trips, number(1));
  set(total_trips_, b_.CreateAdd(get(total_trips_), uncounted));
  set(units_, b_.CreateSub(get(units_), b_.CreateMul(uncounted, number(loop.schedule.weight))));
  Value* next = b_.CreateAdd(first, trips);
  set(trip_[index], next);
  b_.CreateCondBr(b_.CreateICmpSLT(next, get(trips_[index])), more, done);
  b_.SetInsertPoint(more);
  count_trips(loop, 1);
  b_.CreateBr(pass);
  b_.SetInsertPoint(done);
}

// `count` elements from `at` on, for `trips` trips from `first` on.
void LoopWriter::write_block(const Loop& loop, Value* at, int64_t count, Value* first, Value* trips) {
  auto place = [&](uint32_t s, ElementType type) {
    return b_.CreateGEP(element_ir_type(b_.getContext(), type), pointer(s), at);
  };
  std::map<uint32_t, std::vector<llvm::AllocaInst*>> held;
  for (const LoopState& state : loop.states) {
    const ElementType type = p_.slots[state.in].type.element;
    for (Value* vector : load_numbers(place(state.in, type), type, range(count)).vectors) {
      held[state.in].push_back(variable(vector->getType(), "held"));
      set(held[state.in].back(), vector);
    }
  }
  auto* trip = variable(b_.getInt64Ty(), "trip");
  set(trip, b_.getInt64(0));
  Block* body = Block::Create(b_.getContext(), "body", function_, exit_);
  Block* after = Block::Create(b_.getContext(), "after", function_, exit_);
  b_.CreateBr(body);
  b_.SetInsertPoint(body);
  if (loop.counter != kNoSlot) {
    store_chunk(loop.counter, ElementType::kInt64, 1, 0, b_.CreateAdd(first, get(trip)));
  }
  std::map<uint32_t, Flat> values;
  for (const LoopState& state : loop.states) {
    Flat& value = values[state.in];
    value = {element_ir_type(b_.getContext(), p_.slots[state.in].type.element), count, {}};
    for (llvm::AllocaInst* variable : held[state.in]) value.vectors.push_back(get(variable));
  }
  for (pc_ = loop.first + 1; pc_ + 1 < loop.last; ++pc_) write_in_block(*request_.elementwise(pc_), at, count, values);
  for (const LoopState& state : loop.states) {
    const Flat& value = values.at(state.out);
    for (size_t c = 0; c < value.vectors.size(); ++c) set(held[state.in][c], value.vectors[c]);
  }
  set(trip, b_.CreateAdd(get(trip), b_.getInt64(1)));
  b_.CreateCondBr(b_.CreateICmpSLT(get(trip), trips), body, after);
  b_.SetInsertPoint(after);
  for (const LoopState& state : loop.states) {
    const ElementType type = p_.slots[state.in].type.element;
    Flat value{element_ir_type(b_.getContext(), type), count, {}};
    for (llvm::AllocaInst* variable : held[state.in]) value.vectors.push_back(get(variable));
    store_flat(place(state.in, type), type, value);
  }
}

// Takes values from `values` where they are there, and puts the results there.
void LoopWriter::write_in_block(const ElementwiseCode& code, Value* at, int64_t count,
                                std::map<uint32_t, Flat>& values) {
  std::vector<Flat> operands;
  for (const ElementwiseCode::Input& in : code.inputs) {
    if (in.spread == Spread::kScalar) {
      operands.push_back(flats_.splat(element(in.slot, in.type, 0), count));
    } else if (const auto known = values.find(in.slot); known != values.end()) {
      operands.push_back(known->second);
    } else {
      Value* from = b_.CreateGEP(element_ir_type(b_.getContext(), in.type), pointer(in.slot), at);
      operands.push_back(load_numbers(from, in.type, range(count)));
    }
  }
  operands = run_steps(code, std::move(operands));
  for (const ElementwiseCode::Output& out : code.outputs) values[out.slot] = operands[code.inputs.size() + out.step];
}

}  // namespace treadle::jit
