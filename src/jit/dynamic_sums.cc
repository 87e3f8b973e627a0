// Reductions of values of dynamic shape.

#include <numeric>

#include "jit/dynamic_shapes.h"
#include "jit/lane_maths.h"
#include "kernels/sum_order.h"

namespace treadle::jit {

using kernels::ElementwiseOp;
using kernels::ReduceOp;

// One row after the other becomes one element. Blocks of a row are combined in the order of kernels/sum_order.h; sums
// of blocks are added in double.
class LoopWriter::DynamicShapeWriter::RowReducer {
 public:
  // Reduces rows of `from`.
  RowReducer(DynamicShapeWriter& shapes, const Tensor& to, uint32_t from)
      : s_(shapes),
        w_(shapes.w_),
        b_(shapes.w_.b_),
        from_(from),
        op_(to.code->reduce),
        type_(to.type),
        lanes_(static_cast<unsigned>(LaneMaths(w_.lanes_, w_, w_.request_.isa).lanes_of_kernel(to.type))),
        scalar_(element_ir_type(b_.getContext(), to.type)) {}

  // The row at `at` of `n` elements.
  Value* reduce(const Values& at, Value* n) {
    at_ = at;
    Variable total = variable(adds() ? b_.getDoubleTy() : scalar_, "total");
    if (adds()) total = llvm::ConstantFP::get(b_.getDoubleTy(), 0);
    Variable sum = variable(scalar_, "sum");
    Value* const block = number(kernels::reduce_block(type_, false));
    Value* const blocks = b_.CreateUDiv(b_.CreateAdd(n, b_.CreateSub(block, number(1))), block);
    w_.count_up_to(blocks, [&](Value* number_of_block) {
      first_ = b_.CreateMul(number_of_block, block);
      end_ = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(first_, block), n);
      size_ = b_.CreateSub(end_, first_);
      kernels::sum_order::combine_block(*this, sum);
      take_block(number_of_block, sum, total);
    });
    return finished(total, n);
  }

  // --- a block, as kernels/sum_order.h asks for it

  using Element = Value*;
  class Variable {
   public:
    Variable(LoopWriter& writer, llvm::AllocaInst* place) : w_(writer), place_(place) {}
    Variable(const Variable&) = default;
    Variable& operator=(const Variable&) = delete;
    Variable& operator=(Value* value) { return w_.set(place_, value), *this; }
    operator Value*() const { return w_.get(place_); }

   private:
    LoopWriter& w_;
    llvm::AllocaInst* const place_;
  };

  size_t lanes() const { return lanes_; }
  Value* first() const { return first_; }
  Value* after(Value* i, size_t more) const { return b_.CreateAdd(i, number(more)); }
  Value* has(size_t least) const { return b_.CreateICmpSGE(size_, number(least)); }
  Value* lacks(size_t least) const { return b_.CreateICmpSLT(size_, number(least)); }
  Value* element(Value* i) const { return term(i, 1); }
  Value* vector(Value* i) const { return term(i, lanes_); }
  Variable new_vector() const { return variable(lanes_of(scalar_, lanes_), "sum"); }
  Variable new_position() const { return variable(b_.getInt64Ty(), "position"); }

  Value* combine(Value* x, Value* y) const {
    plan::ElementwiseCode::Step step;
    step.op = adds() ? ElementwiseOp::kAdd : op_ == ReduceOp::kMax ? ElementwiseOp::kMax : ElementwiseOp::kMin;
    step.from = step.to = type_;
    step.argument_count = 2;
    const IrScope scope(b_, lanes_in(x), w_.request_.isa);
    return write_step(step, {x, y}, w_);
  }

  template <class Fn>
  Value* split(Value* vector, const Fn& fn) const {
    const unsigned half = lanes_in(vector) / 2;
    if (half == 0) return vector;
    if (half == 1)
      return fn(b_.CreateExtractElement(vector, uint64_t{0}), b_.CreateExtractElement(vector, uint64_t{1}));
    llvm::SmallVector<int, 8> low(half), high(half);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), static_cast<int>(half));
    return fn(b_.CreateShuffleVector(vector, low), b_.CreateShuffleVector(vector, high));
  }

  template <class Fn>
  void each(Variable& i, size_t step, const Fn& fn) const {
    Block* head = new_block("while");
    Block* body = new_block("do");
    Block* done = new_block("done");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    b_.CreateCondBr(b_.CreateICmpSLE(after(i, step), end_), body, done);
    b_.SetInsertPoint(body);
    fn(static_cast<Value*>(i));
    i = after(i, step);
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
  }

  template <class Yes, class No>
  void either(Value* condition, const Yes& yes, const No& no) const {
    Block* first = new_block("yes");
    Block* second = new_block("no");
    Block* done = new_block("joined");
    b_.CreateCondBr(condition, first, second);
    b_.SetInsertPoint(first);
    yes();
    b_.CreateBr(done);
    b_.SetInsertPoint(second);
    no();
    b_.CreateBr(done);
    b_.SetInsertPoint(done);
  }

 private:
  bool adds() const { return op_ != ReduceOp::kMax && op_ != ReduceOp::kMin; }
  bool squares() const { return op_ == ReduceOp::kL2 || op_ == ReduceOp::kSumSquare; }
  Value* number(size_t n) const { return s_.number(static_cast<int64_t>(n)); }
  Variable variable(llvm::Type* type, const char* name) const { return {w_, w_.variable(type, name)}; }
  Block* new_block(const char* name) const { return Block::Create(b_.getContext(), name, w_.function_, w_.exit_); }

  // Elements of the row from element i on, as they are added up.
  Value* term(Value* i, unsigned count) const {
    Values here = at_;
    here.push_back(i);
    Seen seen;
    Value* x = s_.elements(from_, here, count, seen);
    return squares() ? b_.CreateFMul(x, x) : x;
  }

  void take_block(Value* number_of_block, const Variable& sum, Variable& total) const {
    if (adds()) {
      total = b_.CreateFAdd(total, b_.CreateFPCast(sum, b_.getDoubleTy()));
      return;
    }
    // Nothing is before the first block.
    either(
        b_.CreateICmpEQ(number_of_block, number(0)), [&] { total = static_cast<Value*>(sum); },
        [&] { total = combine(total, sum); });
  }

  Value* finished(Value* result, Value* n) const {
    if (op_ == ReduceOp::kMean) result = b_.CreateFDiv(result, b_.CreateSIToFP(n, b_.getDoubleTy()));
    if (op_ == ReduceOp::kL2) result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, result);
    return b_.CreateFPCast(result, scalar_);
  }

  DynamicShapeWriter& s_;
  LoopWriter& w_;
  llvm::IRBuilder<>& b_;
  const uint32_t from_;
  const ReduceOp op_;
  const ElementType type_;
  const unsigned lanes_;
  llvm::Type* const scalar_;
  Values at_;                                                  // of the row
  Value *first_ = nullptr, *end_ = nullptr, *size_ = nullptr;  // of the block
};

void LoopWriter::DynamicShapeWriter::reduce(uint32_t s) {
  Tensor& to = tensors_.at(s);
  const Tensor place = place_of(to);
  const uint32_t from = inputs_.at(to.pc)[0];
  Value* const n = tensors_.at(from).sizes.back();
  Tensor kept = place;  // with an axis at the end in place of the one that goes
  if (!to.code->keep) kept.sizes.push_back(number(1)), kept.strides.push_back(number(0));
  RowReducer reducer(*this, to, from);
  Values at(kept.sizes.size());
  each_row(kept, 0, at, [&](Values& row) {
    row.pop_back();
    Value* const result = reducer.reduce(row, n);
    row.push_back(number(0));
    w_.store_at(address(kept, row), to.type, result);
  });
  to.data = place.data;
  to.strides = place.strides;
}

}  // namespace treadle::jit
