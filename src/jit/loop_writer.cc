#include "jit/loop_writer.h"

#include <llvm/IR/MDBuilder.h>

#include <cstddef>
#include <cstring>

#include "jit/dynamic_shapes.h"
#include "op/kernel.h"

namespace treadle::jit {

using plan::ElementwiseCode;
using plan::Instruction;
using plan::Loop;
using plan::LoopCounters;
using plan::NativeFrame;
using plan::NativeHost;
using plan::NativeRef;
using plan::OpCode;
using plan::Storage;

LoopWriter::LoopWriter(const plan::NativeRequest& request, llvm::Module& module)
    : request_(request),
      p_(*request.program),
      loop_(p_.loops[request.loop]),
      chunks_(request.isa),
      layout_(lay_out(request, chunks_)),
      module_(module),
      b_(module.getContext()),
      lanes_(b_, chunks_) {}

void LoopWriter::write() {
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy()}, false);
  function_ = llvm::Function::Create(type, llvm::Function::ExternalLinkage, "loop", module_);
  function_->addFnAttr(llvm::Attribute::NoUnwind);
  frame_ = function_->getArg(0);
  Block* entry = Block::Create(b_.getContext(), "entry", function_);
  exit_ = Block::Create(b_.getContext(), "exit", function_);
  b_.SetInsertPoint(entry);
  slots_ = field(offsetof(NativeFrame, slots), b_.getPtrTy());
  counters_ = field(offsetof(NativeFrame, counters), b_.getPtrTy());
  context_ = field(offsetof(NativeFrame, context), b_.getPtrTy());
  table_ = field(offsetof(NativeFrame, table), b_.getPtrTy());
  units_ = variable(b_.getInt64Ty(), "units");
  total_iterations_ = variable(b_.getInt64Ty(), "total_iterations");
  refresh();
  open_variables();
  if (layout_.inline_loop[request_.loop]) open_counters();
  if (runs_in_strips(request_.loop)) {
    write_strips(request_.loop);
    b_.CreateBr(exit_);
  } else {
    write_body();
  }

  b_.SetInsertPoint(exit_);
  close_variables();
  publish();
  b_.CreateRet(b_.getInt32(0));
}

void LoopWriter::open_counters() {
  iteration_[request_.loop] = variable(b_.getInt64Ty(), "iteration");
  iterations_[request_.loop] = variable(b_.getInt64Ty(), "iterations");
  set(iteration_[request_.loop],
      b_.CreateLoad(b_.getInt64Ty(), counter_address(request_.loop, offsetof(LoopCounters, iteration))));
  set(iterations_[request_.loop],
      b_.CreateLoad(b_.getInt64Ty(), counter_address(request_.loop, offsetof(LoopCounters, iterations))));
}

// --- the frame -------------------------------------------------------------------------------------------------------

LoopWriter::Value* LoopWriter::field(size_t at, llvm::Type* type) {
  return b_.CreateLoad(type, offset(frame_, static_cast<int64_t>(at)));
}

LoopWriter::Value* LoopWriter::slot_address(uint32_t s) {
  return offset(slots_, static_cast<int64_t>(s * sizeof(void*)));
}

LoopWriter::Value* LoopWriter::counter_address(uint32_t loop, size_t at) {
  return offset(counters_, static_cast<int64_t>(loop * request_.counter_stride + at));
}

LoopWriter::Value* LoopWriter::reference(NativeRef ref) {
  size_t at = 0;
  while (at < refs_.size() && !(refs_[at] == ref)) ++at;
  if (at == refs_.size()) refs_.push_back(ref);
  auto* load = b_.CreateLoad(b_.getPtrTy(), offset(table_, static_cast<int64_t>(at * sizeof(void*))));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(b_.getContext(), {}));
  return load;
}

LoopWriter::Value* LoopWriter::host(size_t at) {
  return reference({NativeRef::Kind::kHost, static_cast<uint32_t>(at), {}});
}

llvm::AllocaInst* LoopWriter::variable(llvm::Type* type, const char* name) {
  Block& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at(&entry, entry.begin());
  return at.CreateAlloca(type, nullptr, name);
}

// The values that the current basic block has set, which it reads without a load. Otherwise LLVM would walk through
// each block for each variable that two blocks set and one of them reads, and compile time would be quadratic in the
// length of a body.
llvm::DenseMap<const llvm::AllocaInst*, LoopWriter::Value*>& LoopWriter::known() {
  if (known_in_ != b_.GetInsertBlock()) known_.clear();
  known_in_ = b_.GetInsertBlock();
  return known_;
}

LoopWriter::Value* LoopWriter::get(llvm::AllocaInst* variable) {
  Value*& value = known()[variable];
  if (!value) value = b_.CreateLoad(variable->getAllocatedType(), variable);
  return value;
}

void LoopWriter::set(llvm::AllocaInst* variable, Value* value) {
  b_.CreateStore(value, variable);
  known()[variable] = value;
}

LoopWriter::Value* LoopWriter::stack(size_t bytes) {
  auto* memory = variable(llvm::ArrayType::get(b_.getInt8Ty(), bytes), "stack");
  memory->setAlignment(llvm::Align(64));
  return memory;
}

// --- variables -------------------------------------------------------------------------------------------------------

void LoopWriter::open_variables() {
  for (uint32_t s = 1; s < layout_.locations.size(); ++s) {
    const Location& place = layout_.locations[s];
    if (place.kind == LocationKind::kPointer) {
      pointers_[s] = variable(b_.getPtrTy(), "at");
      set(pointers_[s], b_.CreateLoad(b_.getPtrTy(), slot_address(s)));
    } else if (place.kind == LocationKind::kRegister) {
      if (p_.slots[s].storage == Storage::kConstant && place.count == 1) continue;  // a literal
      Value* memory = b_.CreateLoad(b_.getPtrTy(), slot_address(s));
      llvm::Type* scalar = element_ir_type(b_.getContext(), place.type);
      const auto width = static_cast<int64_t>(byte_width(place.type));
      for (size_t c = 0; c < chunks_.size(place.count); ++c) {
        const unsigned lanes = chunks_.lanes(place.count, c);
        registers_[s].push_back(variable(lanes_of(scalar, lanes), "value"));
        set(registers_[s].back(),
            load_at(offset(memory, static_cast<int64_t>(c) * chunks_.full * width), place.type, lanes));
      }
    }
  }
}

// Stores states and pointers where the interpreter looks for them.
void LoopWriter::close_variables() {
  for (const auto& [s, variable] : pointers_) {
    if (layout_.locations[s].moves) b_.CreateStore(get(variable), slot_address(s));
  }
  for (const plan::LoopState& state : loop_.states) {
    const Location& place = layout_.locations[state.in];
    if (place.kind != LocationKind::kRegister) continue;
    Value* memory = b_.CreateLoad(b_.getPtrTy(), slot_address(state.in));
    const auto width = static_cast<int64_t>(byte_width(place.type));
    for (size_t c = 0; c < registers_.at(state.in).size(); ++c) {
      store_at(offset(memory, static_cast<int64_t>(c) * chunks_.full * width), place.type,
               get(registers_.at(state.in)[c]));
    }
  }
}

LoopWriter::Value* LoopWriter::pointer(uint32_t s) {
  const auto it = pointers_.find(s);
  return it != pointers_.end() ? get(it->second) : b_.CreateLoad(b_.getPtrTy(), slot_address(s));
}

void LoopWriter::set_pointer(uint32_t s, Value* to) {
  const auto it = pointers_.find(s);
  if (it != pointers_.end()) {
    set(it->second, to);
  } else {
    b_.CreateStore(to, slot_address(s));
  }
}

LoopWriter::Value* LoopWriter::load_at(Value* at, ElementType type, unsigned lanes) {
  return b_.CreateAlignedLoad(lanes_of(element_ir_type(b_.getContext(), type), lanes), at,
                              llvm::Align(byte_width(type)));
}

void LoopWriter::store_at(Value* at, ElementType type, Value* value) {
  b_.CreateAlignedStore(value, at, llvm::Align(byte_width(type)));
}

LoopWriter::Value* LoopWriter::literal(uint32_t s, int64_t index) {
  const Tensor& constant = p_.slots[s].constant;
  const auto* bytes = static_cast<const std::byte*>(constant.raw());
  const ElementType type = layout_.locations[s].type;
  llvm::Type* ir_type = element_ir_type(b_.getContext(), type);
  const size_t width = byte_width(type);
  uint64_t bits = 0;
  std::memcpy(&bits, bytes + static_cast<size_t>(index) * width, width);
  llvm::Constant* whole = llvm::ConstantInt::get(b_.getIntNTy(static_cast<unsigned>(8 * width)), bits);
  return ir_type->isIntegerTy() ? whole : llvm::ConstantExpr::getBitCast(whole, ir_type);
}

LoopWriter::Value* LoopWriter::load_chunk(uint32_t s, ElementType type, int64_t count, size_t chunk) {
  if (layout_.locations[s].kind == LocationKind::kRegister) {
    const auto it = registers_.find(s);
    return it == registers_.end() ? literal(s, 0) : get(it->second[chunk]);
  }
  const auto width = static_cast<int64_t>(byte_width(type));
  return load_at(offset(pointer(s), static_cast<int64_t>(chunk) * chunks_.full * width), type,
                 chunks_.lanes(count, chunk));
}

void LoopWriter::store_chunk(uint32_t s, ElementType type, int64_t count, size_t chunk, Value* value) {
  static_cast<void>(count);
  if (layout_.locations[s].kind == LocationKind::kRegister) return set(registers_.at(s)[chunk], value);
  const auto width = static_cast<int64_t>(byte_width(type));
  store_at(offset(pointer(s), static_cast<int64_t>(chunk) * chunks_.full * width), type, value);
}

LoopWriter::Value* LoopWriter::element(uint32_t s, ElementType type, int64_t index) {
  const Location& place = layout_.locations[s];
  if (place.kind != LocationKind::kRegister) {
    const auto width = static_cast<int64_t>(byte_width(type));
    return load_at(offset(pointer(s), index * width), type, 1);
  }
  const auto chunk = static_cast<size_t>(index / chunks_.full);
  Value* vector = load_chunk(s, type, place.count, chunk);
  if (!vector->getType()->isVectorTy()) return vector;
  return b_.CreateExtractElement(vector, static_cast<uint64_t>(index % chunks_.full));
}

LoopWriter::Value* LoopWriter::flag(uint32_t s) {
  if (p_.slots[s].storage == Storage::kHandle) {
    Value* byte = stack(1);
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getInt32Ty(), b_.getPtrTy()}, false);
    leave_unless_zero(b_.CreateCall(type, host(offsetof(NativeHost, read_flag)), {context_, b_.getInt32(s), byte}));
    return b_.CreateICmpNE(b_.CreateLoad(b_.getInt8Ty(), byte), b_.getInt8(0));
  }
  return b_.CreateICmpNE(element(s, ElementType::kBool, 0), b_.getInt8(0));
}

void LoopWriter::copy(uint32_t from, uint32_t to, size_t bytes) {
  if (from == to || bytes == 0) return;
  const Location* place = nullptr;
  for (uint32_t s : {to, from}) {
    if (layout_.locations[s].kind == LocationKind::kRegister) place = &layout_.locations[s];
  }
  if (!place) {
    b_.CreateMemCpy(pointer(to), llvm::Align(1), pointer(from), llvm::Align(1), bytes);
    return;
  }
  for (size_t c = 0; c < chunks_.size(place->count); ++c) {
    store_chunk(to, place->type, place->count, c, load_chunk(from, place->type, place->count, c));
  }
}

// --- leaving ---------------------------------------------------------------------------------------------------------

// Stores the engine's counts of work and iterations, and the loop's position, before a call of the engine. refresh()
// reads them after it.
void LoopWriter::publish() {
  if (const auto iteration = iteration_.find(request_.loop); iteration != iteration_.end()) {
    b_.CreateStore(get(iteration->second), counter_address(request_.loop, offsetof(LoopCounters, iteration)));
  }
  b_.CreateStore(get(units_), field(offsetof(NativeFrame, poll_units), b_.getPtrTy()));
  b_.CreateStore(get(total_iterations_), field(offsetof(NativeFrame, iterations), b_.getPtrTy()));
}

void LoopWriter::refresh() {
  set(units_, b_.CreateLoad(b_.getInt64Ty(), field(offsetof(NativeFrame, poll_units), b_.getPtrTy())));
  set(total_iterations_, b_.CreateLoad(b_.getInt64Ty(), field(offsetof(NativeFrame, iterations), b_.getPtrTy())));
}

void LoopWriter::leave_unless_zero(Value* code) {
  leave_if(b_.CreateICmpNE(code, b_.getInt32(0)), code);
}

void LoopWriter::branch_unless_zero(Value* code, Block* otherwise) {
  Block* next = Block::Create(b_.getContext(), "zero", function_, exit_);
  b_.CreateCondBr(b_.CreateICmpEQ(code, b_.getInt32(0)), next, otherwise);
  b_.SetInsertPoint(next);
}

// Calls a function of the engine that returns a code.
LoopWriter::Value* LoopWriter::call_host(size_t at, llvm::ArrayRef<Value*> arguments) {
  llvm::SmallVector<llvm::Type*, 6> types;
  for (const Value* argument : arguments) types.push_back(argument->getType());
  return b_.CreateCall(llvm::FunctionType::get(b_.getInt32Ty(), types, false), host(at), arguments);
}

LoopWriter::Value* LoopWriter::constant_values(std::span<const plan::NativeValue> values) {
  llvm::SmallVector<uint32_t, 32> numbers;
  for (const auto& [pc, operand, rank, append] : values) numbers.append({pc, operand, rank, append});
  auto* list = llvm::ConstantDataArray::get(b_.getContext(), numbers);
  auto* variable = new llvm::GlobalVariable(module_, list->getType(), true, llvm::GlobalValue::PrivateLinkage, list);
  variable->setAlignment(llvm::Align(alignof(plan::NativeValue)));
  return variable;
}

void LoopWriter::leave_if(Value* condition, Value* code) {
  Block* leave = Block::Create(b_.getContext(), "leave", function_);
  Block* stay = Block::Create(b_.getContext(), "stay", function_, exit_);
  auto* branch = b_.CreateCondBr(condition, leave, stay);
  branch->setMetadata(llvm::LLVMContext::MD_prof, llvm::MDBuilder(b_.getContext()).createBranchWeights(1, 1 << 20));
  b_.SetInsertPoint(leave);
  b_.CreateStore(b_.getInt32(pc_), offset(frame_, offsetof(NativeFrame, failed_at)));
  for (const auto& [index, iteration] : iteration_) {
    const Loop& loop = p_.loops[index];
    if (!layout_.inline_loop[index] || pc_ < loop.first || pc_ > loop.last) continue;
    b_.CreateStore(get(iteration), counter_address(index, offsetof(LoopCounters, iteration)));
    b_.CreateStore(b_.getInt8(pc_ > loop.first), counter_address(index, offsetof(LoopCounters, active)));
  }
  b_.CreateRet(code);
  b_.SetInsertPoint(stay);
}

void LoopWriter::fail_if(Value* condition, uint32_t code) {
  leave_if(condition, b_.getInt32(code));
}

LoopWriter::Value* LoopWriter::row_function(kernels::ElementwiseOp op, ElementType type) {
  return reference({NativeRef::Kind::kRow, static_cast<uint32_t>(op), type});
}

// --- instructions ----------------------------------------------------------------------------------------------------

LoopWriter::Block* LoopWriter::block_of(uint32_t pc) {
  Block*& block = blocks_[pc];
  if (!block) block = Block::Create(b_.getContext(), "at", function_, exit_);
  return block;
}

void LoopWriter::go_to(Block* block) {
  if (!b_.GetInsertBlock()->getTerminator()) b_.CreateBr(block);
}

// The last instruction that is written together with `pc`: a loop in strips is written with its begin, and one call of
// the engine runs a sequence of instructions.
uint32_t LoopWriter::last_written_with(uint32_t pc) const {
  const Instruction& in = p_.code[pc];
  if (in.code == OpCode::kLoopBegin && runs_in_strips(in.index)) return p_.loops[in.index].last - 1;
  const auto by_engine = [&](uint32_t at) {
    return plan::is_dynamic(p_.code[at].code) || p_.code[at].code == OpCode::kMove;
  };
  while (by_engine(pc) && by_engine(pc + 1) && !blocks_.contains(pc + 1)) ++pc;
  return pc;
}

void LoopWriter::write_body() {
  const uint32_t first = loop_.first + 1;
  for (uint32_t pc = first; pc < loop_.last; pc = last_written_with(pc) + 1) {
    if (plan::jumps(p_.code[pc].code)) block_of(p_.code[pc].target);
  }
  block_of(first);
  for (uint32_t pc = first; pc < loop_.last; pc = last_written_with(pc) + 1) {
    if (const auto it = blocks_.find(pc); it != blocks_.end()) {
      go_to(it->second);
      b_.SetInsertPoint(it->second);
    }
    pc_ = pc;
    write(pc);
  }
}

void LoopWriter::write(uint32_t pc) {
  const Instruction& in = p_.code[pc];
  switch (in.code) {
    case OpCode::kKernel: {
      if (layout_.written[pc - loop_.first] == Written::kCall) return write_call(pc);
      if (const auto* other = request_.other(pc)) {
        return std::visit([&](const auto& code) { write_other(code); }, *other);
      }
      const ElementwiseCode& code = *request_.elementwise(pc);
      if (!code.reductions.empty()) return write_reductions(code);
      const auto tiles = layout_.shape.tiles.find(pc);
      return tiles == layout_.shape.tiles.end() ? write_short(code) : write_nest(code, tiles->second);
    }
    case OpCode::kGuarded:
    case OpCode::kCompute:
    case OpCode::kMove:
      return write_dynamic(pc, last_written_with(pc) + 1);
    case OpCode::kCopy: {
      const plan::Copy& c = p_.copies[in.index];
      return copy(c.from, c.to, c.bytes);
    }
    case OpCode::kRow:
      return write_row(pc);
    case OpCode::kJump:
      b_.CreateBr(block_of(in.target));
      b_.SetInsertPoint(Block::Create(b_.getContext(), "after", function_, exit_));
      return;
    case OpCode::kBranchUnless: {
      Block* next = Block::Create(b_.getContext(), "then", function_, exit_);
      b_.CreateCondBr(flag(in.index), next, block_of(in.target));
      b_.SetInsertPoint(next);
      return;
    }
    case OpCode::kLoopBegin:
      return write_begin(pc);
    case OpCode::kLoopNext:
    case OpCode::kLoopNextSimple:
      return write_next(pc);
    case OpCode::kLoopEnd:
      return write_end(pc);
    case OpCode::kPoll: {
      publish();
      auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy()}, false);
      leave_unless_zero(b_.CreateCall(type, host(offsetof(NativeHost, poll)), {context_}));
      return refresh();
    }
    case OpCode::kPipeline:  // never occurs in a loop
    case OpCode::kPipelineEnd:
    case OpCode::kInStrips:
    case OpCode::kEnd:
      return;
  }
}

// Writes sequences of nodes that native code computes, and calls of the engine for the nodes between them.
void LoopWriter::write_dynamic(uint32_t first, uint32_t end) {
  while (first < end) {
    const bool is_known = request_.dynamic.contains(first);
    uint32_t last = first + 1;
    while (last < end && request_.dynamic.contains(last) == is_known) ++last;
    pc_ = first;
    if (is_known) {
      DynamicShapeWriter(*this, first, last).write();
    } else {
      write_engine(first, last);
    }
    first = last;
  }
}

void LoopWriter::write_engine(uint32_t first, uint32_t end) {
  publish();
  leave_unless_zero(call_host(offsetof(NativeHost, dynamic), {context_, b_.getInt32(first), b_.getInt32(end)}));
  refresh();
}

void LoopWriter::write_call(uint32_t pc) {
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getPtrTy(), b_.getPtrTy(), b_.getPtrTy()}, false);
  Value* run = reference({NativeRef::Kind::kRun, pc, {}});
  Value* state = reference({NativeRef::Kind::kState, pc, {}});
  Value* operands = reference({NativeRef::Kind::kOperands, pc, {}});
  leave_unless_zero(b_.CreateCall(type, run, {state, slots_, operands}));
}

// The index counted from the start; leaves the function if it is out of range.
LoopWriter::Value* LoopWriter::checked_index(Value* index, int64_t size) {
  Value* count = b_.getInt64(static_cast<uint64_t>(size));
  Value* negative = b_.CreateICmpSLT(index, b_.getInt64(0));
  Value* at = b_.CreateSelect(negative, b_.CreateAdd(index, count), index);
  Block* wrong = Block::Create(b_.getContext(), "wrong", function_);
  Block* right = Block::Create(b_.getContext(), "right", function_, exit_);
  b_.CreateCondBr(b_.CreateICmpULT(at, count), right, wrong);
  b_.SetInsertPoint(wrong);
  auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {b_.getInt32Ty(), b_.getInt64Ty(), b_.getInt64Ty()}, false);
  Value* code = b_.CreateCall(type, host(offsetof(NativeHost, fail)),
                              {b_.getInt32(static_cast<uint32_t>(KernelError::kIndexOutOfRange)), index, count});
  leave_unless_zero(code);
  b_.CreateUnreachable();
  b_.SetInsertPoint(right);
  return at;
}

void LoopWriter::write_row(uint32_t pc) {
  const plan::Row& row = p_.rows[p_.code[pc].index];
  Value* index = element(row.index, row.wide ? ElementType::kInt64 : ElementType::kInt32, 0);
  Value* at = checked_index(b_.CreateSExt(index, b_.getInt64Ty()), row.count);
  Value* bytes = b_.CreateMul(at, b_.getInt64(row.bytes));
  set_pointer(row.to, b_.CreateGEP(b_.getInt8Ty(), pointer(row.from), bytes));
}

}  // namespace treadle::jit
