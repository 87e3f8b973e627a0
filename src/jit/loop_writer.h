#pragma once
// A loop of a program as an LLVM function: uint32_t (NativeFrame*).

#include <llvm/IR/Module.h>

#include <map>
#include <vector>

#include "jit/places.h"

namespace treadle::jit {

class LoopWriter final : private StepHost {
 public:
  LoopWriter(const plan::NativeRequest& request, llvm::Module& module);
  llvm::Function* write();
  // What the function expects in NativeFrame::table, in order.
  std::vector<plan::NativeRef> take_refs() { return std::move(refs_); }

 private:
  using Value = llvm::Value;
  using Block = llvm::BasicBlock;

  // --- the frame
  Value* field(size_t offset, llvm::Type* type);
  Value* slot_address(uint32_t s);
  Value* counter_address(uint32_t loop, size_t offset);
  Value* reference(plan::NativeRef ref);
  Value* host(size_t offset);
  llvm::AllocaInst* variable(llvm::Type* type, const char* name);
  Value* get(llvm::AllocaInst* variable);
  void set(llvm::AllocaInst* variable, Value* value) { b_.CreateStore(value, variable); }

  // --- places
  void open_places();
  void close_places();
  Value* pointer(uint32_t s);
  void set_pointer(uint32_t s, Value* to);
  Value* offset(Value* pointer, int64_t bytes) { return b_.CreateConstGEP1_64(b_.getInt8Ty(), pointer, bytes); }
  Value* load_chunk(uint32_t s, ElementType type, int64_t count, size_t chunk);
  void store_chunk(uint32_t s, ElementType type, int64_t count, size_t chunk, Value* value);
  Value* load_at(Value* pointer, ElementType type, unsigned lanes);
  void store_at(Value* pointer, ElementType type, Value* value);
  Value* element(uint32_t s, ElementType type, int64_t index);
  Value* literal(uint32_t s, int64_t index);
  Value* flag(uint32_t s);
  void copy(uint32_t from, uint32_t to, size_t bytes);

  // --- instructions
  void write_body();
  void write(uint32_t pc);
  Block* block_of(uint32_t pc);
  void go_to(Block* block);
  void write_call(uint32_t pc);
  void write_row(uint32_t pc);
  void write_short(const plan::ElementwiseCode& code);
  void write_long(const plan::ElementwiseCode& code);
  void write_tile(const plan::ElementwiseCode& code, Value* index, size_t vectors, unsigned lanes,
                  llvm::ArrayRef<Value*> scalars);
  Value* gather(const plan::ElementwiseCode::Input& in, int64_t first, unsigned lanes);
  void run_step(const plan::ElementwiseCode::Step& step, std::vector<Value*>& values, unsigned lanes);

  // --- loops
  void write_begin(uint32_t pc);
  void write_next(uint32_t pc);
  void write_end(uint32_t pc);
  void begin_inline(uint32_t pc, const plan::Loop& loop, uint32_t index);
  void clear_behind(uint32_t s, size_t bytes);
  void step(const plan::Loop& loop);
  void count_trip(const plan::Loop& loop);
  void grow_rows(const plan::Loop& loop, uint32_t index);

  // --- leaving
  void publish();
  void refresh();
  void leave_unless_zero(Value* code);
  void leave_if(Value* condition, Value* code);
  void fail_if(Value* condition, uint32_t code) override;
  Value* row_function(kernels::ElementwiseOp op, ElementType type) override;
  Value* stack(size_t bytes) override;

  const plan::NativeRequest& request_;
  const plan::Program& p_;
  const plan::Loop& loop_;
  const Chunks chunks_;
  const Layout layout_;
  const bool fused_multiply_add_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  llvm::Function* function_ = nullptr;
  Value* frame_ = nullptr;
  Value* slots_ = nullptr;
  Value* counters_ = nullptr;
  Value* context_ = nullptr;
  Value* table_ = nullptr;
  llvm::AllocaInst* units_ = nullptr;
  llvm::AllocaInst* total_trips_ = nullptr;
  Block* exit_ = nullptr;
  uint32_t pc_ = 0;                                               // the instruction being written
  std::map<uint32_t, std::vector<llvm::AllocaInst*>> registers_;  // by slot: one for each chunk
  std::map<uint32_t, llvm::AllocaInst*> pointers_;                // by slot
  std::map<uint32_t, llvm::AllocaInst*> trip_, trips_;            // by loop
  std::map<uint32_t, Block*> blocks_;                             // by instruction that is jumped to
  std::vector<plan::NativeRef> refs_;
};

}  // namespace treadle::jit
