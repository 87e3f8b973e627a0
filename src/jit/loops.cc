// Loops in LoopWriter: begin, the back edge (plan/back_edge.h), end. Native code counts as much work as the interpreter
// between two checks of limits, but checks after every iteration, which costs a subtraction in registers. The
// interpreter instead grants a number of iterations in advance (run/loop_runner.cc). The tests NativeLoops and
// Iterations check that both make the same iterations.
#include <llvm/IR/MDBuilder.h>

#include <cstddef>

#include "jit/loop_writer.h"
#include "plan/back_edge.h"

namespace treadle::jit {

using plan::kNoSlot;
using plan::Loop;
using plan::LoopCounters;
using plan::NativeHost;
using plan::OpCode;

// Whether an inner loop is counted as it begins: it runs all of its iterations, and ends long before limits are
// checked.
bool LoopWriter::counts_at_once(uint32_t index) const {
  constexpr int64_t kMostUnits = plan::kPollUnits / 8;
  const Loop& loop = p_.loops[index];
  return index != request_.loop && layout_.inline_loop[index] && !runs_in_strips(index) && loop.is_scan &&
         loop.continues == kNoSlot && loop.known_iterations > 0 &&
         loop.known_iterations <= kMostUnits / loop.schedule.weight;
}

void LoopWriter::count_iterations(const Loop& loop, int64_t iterations) {
  set(total_iterations_, b_.CreateAdd(get(total_iterations_), b_.getInt64(static_cast<uint64_t>(iterations))));
  set(units_, b_.CreateSub(get(units_), b_.getInt64(static_cast<uint64_t>(iterations * loop.schedule.weight))));
  Block* poll = Block::Create(b_.getContext(), "poll", function_);
  Block* next = Block::Create(b_.getContext(), "granted", function_, exit_);
  auto* branch = b_.CreateCondBr(b_.CreateICmpSLT(get(units_), b_.getInt64(0)), poll, next);
  branch->setMetadata(llvm::LLVMContext::MD_prof, llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 1 << 12));
  b_.SetInsertPoint(poll);
  publish();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy()}, false);
  leave_unless_zero(b_.CreateCall(type, host(offsetof(NativeHost, poll)), {context_}));
  refresh();
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

// Whether the body is a few operations on at most one vector, so that the loop's own instructions take as long as they
// do.
bool LoopWriter::is_tiny(const Loop& loop) const {
  constexpr size_t kMostSteps = 16;  // `edit_distance` takes 0.87 ns an iteration, 1.06 with 4 (bench.py loops)
  size_t steps = 0;
  for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
    const OpCode code = p_.code[pc].code;
    if (code == OpCode::kCopy || code == OpCode::kLoopNext || code == OpCode::kLoopNextSimple) continue;
    const auto* work = request_.elementwise(pc);
    const bool written = layout_.written[pc - loop_.first] == Written::kInline && work;
    if (code != OpCode::kKernel || !written || work->count > chunks_.full) return false;
    steps += work->steps.size();
  }
  return steps <= kMostSteps;
}

// Asks LLVM to unroll four iterations.
void LoopWriter::unroll(llvm::BranchInst* back) {
  llvm::LLVMContext& context = b_.getContext();
  auto* four = llvm::ConstantAsMetadata::get(b_.getInt32(4));
  auto* count = llvm::MDNode::get(context, {llvm::MDString::get(context, "llvm.loop.unroll.count"), four});
  auto* properties = llvm::MDNode::getDistinct(context, {nullptr, count});
  properties->replaceOperandWith(0, properties);
  back->setMetadata(llvm::LLVMContext::MD_loop, properties);
  unrolls_ = true;
}

void LoopWriter::write_begin(uint32_t pc) {
  const uint32_t index = p_.code[pc].index;
  const Loop& loop = p_.loops[index];
  if (layout_.inline_loop[index]) return begin_inline(pc, loop, index);
  publish();
  Value* runs = stack(1);
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getPtrTy()}, false);
  leave_unless_zero(b_.CreateCall(type, host(offsetof(NativeHost, loop_begin)), {context_, b_.getInt32(index), runs}));
  refresh();
  Block* body = Block::Create(b_.getContext(), "body", function_, exit_);
  b_.CreateCondBr(b_.CreateICmpNE(b_.CreateLoad(b_.getInt8Ty(), runs), b_.getInt8(0)), body,
                  block_of(p_.code[pc].target));
  b_.SetInsertPoint(body);
}

// Clears the memory behind a state, since kernels may compute on it too.
void LoopWriter::clear_behind(uint32_t s, size_t bytes) {
  const size_t behind = p_.slots[s].bytes - bytes;
  if (layout_.locations[s].kind == LocationKind::kRegister || behind == 0) return;
  b_.CreateMemSet(offset(pointer(s), static_cast<int64_t>(bytes)), b_.getInt8(0), behind, llvm::Align(1));
}

void LoopWriter::begin_inline(uint32_t pc, const Loop& loop, uint32_t index) {
  auto* iteration = iteration_[index] = variable(b_.getInt64Ty(), "iteration");
  auto* iterations = iterations_[index] = variable(b_.getInt64Ty(), "iterations");
  set(iteration, b_.getInt64(0));
  Value* count = b_.getInt64(static_cast<uint64_t>(loop.is_scan ? loop.known_iterations : INT64_MAX));
  if (!loop.is_scan && loop.trip_count != kNoSlot) count = element(loop.trip_count, ElementType::kInt64, 0);
  if (loop.condition != kNoSlot) count = b_.CreateSelect(flag(loop.condition), count, b_.getInt64(0));
  set(iterations, count);
  for (const plan::LoopState& state : loop.states) {
    copy(state.initial, state.in, state.bytes);
    clear_behind(state.in, state.bytes);
    clear_behind(state.out, state.bytes);
  }
  Value* last = b_.CreateSub(count, b_.getInt64(1));
  for (const plan::ScanOutput& scan : loop.scan_outputs) {
    Value* bytes = b_.CreateMul(last, b_.getInt64(scan.element_bytes));
    set_pointer(scan.row,
                scan.reverse ? b_.CreateGEP(b_.getInt8Ty(), pointer(scan.whole), bytes) : pointer(scan.whole));
  }
  Block* body = Block::Create(b_.getContext(), "body", function_, exit_);
  b_.CreateCondBr(b_.CreateICmpSGT(count, b_.getInt64(0)), body, block_of(p_.code[pc].target));
  b_.SetInsertPoint(body);
  count_iterations(loop, counts_at_once(index) ? loop.known_iterations : 1);
  for (const plan::ScanInput& scan : loop.scan_inputs) {
    Value* bytes = b_.CreateMul(last, b_.getInt64(scan.element_bytes));
    set_pointer(scan.element,
                scan.reverse ? b_.CreateGEP(b_.getInt8Ty(), pointer(scan.whole), bytes) : pointer(scan.whole));
  }
  if (runs_in_strips(index)) return write_strips(index);
  if (loop.counter != kNoSlot) store_chunk(loop.counter, ElementType::kInt64, 1, 0, b_.getInt64(0));
}

// The back edge. A state that is not in memory on both sides is copied.
struct LoopWriter::BackEdge {
  LoopWriter& w;
  llvm::AllocaInst* iteration;
  Value* continues = w.b_.getTrue();

  void ask(uint32_t s) { continues = w.flag(s); }
  void put_row(const plan::LoopStep::Row& row) { w.copy(row.from, row.to, row.bytes); }
  void exchange(const plan::LoopStep::Swap& swap) {
    const auto can_move = [&](uint32_t s) {
      return w.layout_.locations[s].kind == LocationKind::kTable || w.layout_.locations[s].moves;
    };
    if (!can_move(swap.in) || !can_move(swap.out)) return w.copy(swap.out, swap.in, swap.bytes);
    Value* in = w.pointer(swap.in);
    Value* out = w.pointer(swap.out);
    w.set_pointer(swap.in, out);
    w.set_pointer(swap.out, in);
  }
  void advance(const plan::LoopStep::Advance& pointer) {
    w.set_pointer(pointer.slot, w.offset(w.pointer(pointer.slot), pointer.stride));
  }
  // The counter's slot is written when the next iteration begins.
  void count(uint32_t) { w.set(iteration, w.b_.CreateAdd(w.get(iteration), w.b_.getInt64(1))); }
};

void LoopWriter::grow_rows(const Loop& loop, uint32_t index) {
  Block* grow = Block::Create(b_.getContext(), "grow", function_);
  Block* next = Block::Create(b_.getContext(), "fits", function_, exit_);
  Value* capacity = b_.CreateLoad(b_.getInt64Ty(), counter_address(index, offsetof(LoopCounters, row_capacity)));
  b_.CreateCondBr(b_.CreateICmpSGE(get(iteration_[index]), capacity), grow, next);
  b_.SetInsertPoint(grow);
  b_.CreateStore(get(iteration_[index]), counter_address(index, offsetof(LoopCounters, iteration)));
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty()}, false);
  leave_unless_zero(b_.CreateCall(type, host(offsetof(NativeHost, grow_rows)), {context_, b_.getInt32(index)}));
  for (const plan::ScanOutput& scan : loop.scan_outputs) {
    if (scan.row == kNoSlot || scan.whole_planned || !pointers_.contains(scan.row)) continue;
    set(pointers_[scan.row], b_.CreateLoad(b_.getPtrTy(), slot_address(scan.row)));
  }
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

void LoopWriter::write_next(uint32_t pc) {
  const uint32_t index = p_.code[pc].index;
  const Loop& loop = p_.loops[index];
  const bool outer = index == request_.loop;
  Block* done = outer ? exit_ : Block::Create(b_.getContext(), "done", function_, exit_);
  Block* more = Block::Create(b_.getContext(), "more", function_, exit_);
  if (!layout_.inline_loop[index]) {
    publish();
    Value* again = stack(1);
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getPtrTy()}, false);
    leave_unless_zero(
        b_.CreateCall(type, host(offsetof(NativeHost, loop_next)), {context_, b_.getInt32(index), again}));
    refresh();
    b_.CreateCondBr(b_.CreateICmpNE(b_.CreateLoad(b_.getInt8Ty(), again), b_.getInt8(0)), more, done);
    b_.SetInsertPoint(more);
  } else {
    BackEdge edge{*this, iteration_[index]};
    plan::take_back_edge(loop, edge);
    b_.CreateCondBr(b_.CreateAnd(b_.CreateICmpSLT(get(iteration_[index]), get(iterations_[index])), edge.continues),
                    more, done);
    b_.SetInsertPoint(more);
    if (!counts_at_once(index)) count_iterations(loop, 1);
    if (loop.step.grows) grow_rows(loop, index);
    if (loop.counter != kNoSlot) store_chunk(loop.counter, ElementType::kInt64, 1, 0, get(iteration_[index]));
  }
  auto* back = b_.CreateBr(block_of(p_.code[pc].target));
  if (counts_at_once(index) && is_tiny(loop)) unroll(back);
  if (!outer) b_.SetInsertPoint(done);
}

// Counts the iterations of an inner loop for reports.
void LoopWriter::count_end(uint32_t index) {
  const auto add = [&](size_t at, Value* more) {
    Value* const address = counter_address(index, at);
    b_.CreateStore(b_.CreateAdd(b_.CreateLoad(b_.getInt64Ty(), address), more), address);
  };
  add(offsetof(LoopCounters, times_ended), b_.getInt64(1));
  add(offsetof(LoopCounters, iterations_ended), get(iteration_[index]));
}

void LoopWriter::write_end(uint32_t pc) {
  const uint32_t index = p_.code[pc].index;
  const Loop& loop = p_.loops[index];
  if (layout_.inline_loop[index]) {
    for (const plan::LoopState& state : loop.states) {
      if (state.final != kNoSlot) copy(state.in, state.final, state.bytes);
    }
    if (!loop.is_scan || loop.known_iterations < 0) count_end(index);
    return;
  }
  publish();
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty()}, false);
  leave_unless_zero(b_.CreateCall(type, host(offsetof(NativeHost, loop_end)), {context_, b_.getInt32(index)}));
  refresh();
}

}  // namespace treadle::jit
