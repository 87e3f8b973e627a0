#pragma once
// Writes a loop of a program as an LLVM function: uint32_t (NativeFrame*).

#include <llvm/ADT/DenseMap.h>
#include <llvm/IR/Module.h>

#include <map>
#include <vector>

#include "jit/locations.h"
#include "jit/nest.h"

namespace treadle::jit {

class LoopWriter final : private StepHost {
 public:
  LoopWriter(const plan::NativeRequest& request, llvm::Module& module);
  void write();
  // The entries that the function expects in NativeFrame::table, in order.
  std::vector<plan::NativeRef> take_refs() { return std::move(refs_); }
  // Whether loops of the function are marked for unrolling.
  bool unrolls() const { return unrolls_; }

 private:
  using Value = llvm::Value;
  using Block = llvm::BasicBlock;

  // --- the frame
  void open_counters();
  Value* field(size_t offset, llvm::Type* type);
  Value* slot_address(uint32_t s);
  Value* counter_address(uint32_t loop, size_t offset);
  Value* reference(plan::NativeRef ref);
  Value* host(size_t offset);
  llvm::AllocaInst* variable(llvm::Type* type, const char* name);
  Value* get(llvm::AllocaInst* variable);
  void set(llvm::AllocaInst* variable, Value* value);
  // The variables whose values are known in the current basic block.
  llvm::DenseMap<const llvm::AllocaInst*, Value*>& known();

  // --- variables
  void open_variables();
  void close_variables();
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
  uint32_t last_written_with(uint32_t pc) const;
  void write(uint32_t pc);
  Block* block_of(uint32_t pc);
  void go_to(Block* block);
  void write_call(uint32_t pc);
  void write_dynamic(uint32_t first, uint32_t end);
  void write_engine(uint32_t first, uint32_t end);
  class DynamicShapeWriter;
  void write_row(uint32_t pc);

  // --- instructions that compute
  Lanes read_flat(uint32_t s, ElementType type, int64_t count);
  void write_flat(uint32_t s, ElementType type, const Lanes& flat);
  Lanes read_numbers(uint32_t s, ElementType type, int64_t available, std::span<const int64_t> numbers);
  Lanes load_numbers(Value* from, ElementType type, std::span<const int64_t> numbers);
  void store_flat(Value* to, ElementType type, const Lanes& flat);
  void count_to(int64_t count, const std::function<void(Value*)>& fn);
  void count_up_to(Value* count, const std::function<void(Value*)>& fn);
  Value* step_of(const plan::ElementwiseCode::Step& step, llvm::ArrayRef<Value*> arguments);
  std::vector<Value*> call_step(const plan::ElementwiseCode::Step& step,
                                const std::vector<std::vector<Value*>>& arguments);
  llvm::Function* step_function(const plan::ElementwiseCode::Step& step, llvm::ArrayRef<Value*> arguments,
                                size_t vectors);
  std::vector<Lanes> run_steps(const plan::ElementwiseCode& code, std::vector<Lanes> values, int64_t count);
  void write_short(const plan::ElementwiseCode& code);
  void write_nest(const plan::ElementwiseCode& code, int64_t vectors);
  void write_rows(int64_t rows, int64_t n, uint32_t from, uint32_t to, ElementType type, ElementType to_type,
                  const std::function<Lanes(int64_t rows, const Lanes&)>& reduce);
  void write_columns(int64_t outer, int64_t n, int64_t inner, uint32_t from, uint32_t to, ElementType type,
                     ElementType to_type,
                     const std::function<Lanes(int64_t columns, int64_t stride, const Lanes&)>& reduce);
  void write_other(const plan::ReductionCode& code);
  void write_other(const plan::ArgReductionCode& code);
  void write_other(const plan::ProductCode& code);
  void write_row_product(const plan::ProductCode& code);
  Lanes sum_rows(const plan::ProductCode& code, Value* row, Value* matrix, int64_t column, int64_t count);
  void write_other(const plan::MoveCode& code);
  void write_vectors(const plan::MoveCode& code);
  void write_region(const plan::MoveCode& code, const plan::MoveCode::Region& region, size_t d, Value* in, Value* out);
  Value* filler(const plan::MoveCode& code, const plan::MoveCode::Region& region);
  void write_other(const plan::GatherCode& code);
  Value* gathered_row(const plan::GatherCode& code, Value* index);
  Value* checked_index(Value* index, int64_t count);
  Lanes constants(const plan::MoveCode& code);
  class NestWriter;
  void write_reductions(const plan::ElementwiseCode& code);
  class ReductionWriter;

  // --- loops
  void write_begin(uint32_t pc);
  void write_next(uint32_t pc);
  void write_end(uint32_t pc);
  void count_end(uint32_t index);
  void begin_inline(uint32_t pc, const plan::Loop& loop, uint32_t index);
  void clear_behind(uint32_t s, size_t bytes);
  struct BackEdge;
  bool counts_at_once(uint32_t index) const;
  bool is_tiny(const plan::Loop& loop) const;
  void unroll(llvm::BranchInst* back);
  void count_iterations(const plan::Loop& loop, int64_t iterations);
  bool runs_in_strips(uint32_t index) const;
  void write_strips(uint32_t index);
  class ElementStripWriter;
  void grow_rows(const plan::Loop& loop, uint32_t index);

  // --- leaving
  void publish();
  void refresh();
  void leave_unless_zero(Value* code);
  void branch_unless_zero(Value* code, Block* otherwise);
  Value* call_host(size_t at, llvm::ArrayRef<Value*> arguments);
  Value* constant_values(std::span<const plan::NativeValue> values);
  void leave_if(Value* condition, Value* code);
  void fail_if(Value* condition, uint32_t code) override;
  Value* row_function(kernels::ElementwiseOp op, ElementType type) override;
  Value* stack(size_t bytes) override;

  const plan::NativeRequest& request_;
  const plan::Program& p_;
  const plan::Loop& loop_;
  Chunks chunks_;
  const Layout layout_;
  llvm::Module& module_;
  llvm::IRBuilder<> b_;
  LaneBuilder lanes_;
  llvm::Function* function_ = nullptr;
  Value* frame_ = nullptr;
  Value* slots_ = nullptr;
  Value* counters_ = nullptr;
  Value* context_ = nullptr;
  Value* table_ = nullptr;
  llvm::AllocaInst* units_ = nullptr;
  llvm::AllocaInst* total_iterations_ = nullptr;
  Block* exit_ = nullptr;
  uint32_t pc_ = 0;                                               // the current instruction
  std::map<uint32_t, std::vector<llvm::AllocaInst*>> registers_;  // by slot: a variable for each vector
  std::map<uint32_t, llvm::AllocaInst*> pointers_;                // by slot
  std::map<uint32_t, llvm::AllocaInst*> iteration_, iterations_;  // by loop
  std::map<uint32_t, Block*> blocks_;                             // by instruction that is the target of a jump
  llvm::DenseMap<const llvm::AllocaInst*, Value*> known_;
  const Block* known_in_ = nullptr;
  std::map<std::tuple<StepKind, llvm::Type*, size_t>, llvm::Function*> step_functions_;  // also by lanes and vectors
  std::vector<std::pair<uint32_t, uint32_t>> users_;  // by slot: its first and last user; empty until needed
  std::vector<plan::NativeRef> refs_;
  bool unrolls_ = false;
};

}  // namespace treadle::jit
