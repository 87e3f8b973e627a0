// Reductions of values of dynamic shape.

#include "jit/dynamic_shapes.h"
#include "jit/lane_maths.h"

namespace treadle::jit {

using kernels::ElementwiseOp;
using kernels::ReduceOp;

// One row after the other becomes one element, in the order of reduce_block in kernels/isa/reduce.cc: a block in four
// vectors where there are so many, the rest of it vector by vector and element by element. Sums of blocks are added in
// double.
class LoopWriter::DynamicShapeWriter::RowReducer {
 public:
  // Rows of `from`.
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
    begin();
    Value* const block = number(static_cast<int64_t>(kernels::reduce_block(type_, false)));
    Value* const blocks = b_.CreateUDiv(b_.CreateAdd(n, b_.CreateSub(block, number(1))), block);
    w_.count_up_to(blocks, [&](Value* number_of_block) {
      Value* const first = b_.CreateMul(number_of_block, block);
      Value* const end = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b_.CreateAdd(first, block), n);
      reduce_block(first, end);
      take_block(number_of_block);
    });
    return finished(n);
  }

 private:
  bool adds() const { return op_ != ReduceOp::kMax && op_ != ReduceOp::kMin; }
  bool squares() const { return op_ == ReduceOp::kL2 || op_ == ReduceOp::kSumSquare; }
  Value* number(int64_t n) const { return s_.number(n); }

  void begin() {
    total_ = w_.variable(adds() ? b_.getDoubleTy() : scalar_, "total");
    if (adds()) w_.set(total_, llvm::ConstantFP::get(b_.getDoubleTy(), 0));
    sum_ = variable(1);
    position_ = w_.variable(b_.getInt64Ty(), "position");
  }

  // `sum_` becomes that of the elements [first, end), of which there is one at least.
  void reduce_block(Value* first, Value* end) {
    Value* const size = b_.CreateSub(end, first);
    either(
        b_.CreateICmpSLT(size, number(lanes_)),
        [&] {
          w_.set(sum_, term(first, 1));
          w_.set(position_, b_.CreateAdd(first, number(1)));
        },
        [&] {
          auto* const all = variable(lanes_);
          either(
              b_.CreateICmpSGE(size, number(4 * lanes_)), [&] { reduce_fours(first, end, all); },
              [&] {
                w_.set(all, term(first, lanes_));
                w_.set(position_, b_.CreateAdd(first, number(lanes_)));
              });
          while_below(end, lanes_, [&](Value* i) { w_.set(all, apply(w_.get(all), term(i, lanes_), lanes_)); });
          w_.set(sum_, halved(w_.get(all)));
        });
    while_below(end, 1, [&](Value* i) { w_.set(sum_, apply(w_.get(sum_), term(i, 1), 1)); });
  }

  // As many whole fours of vectors as there are.
  void reduce_fours(Value* first, Value* end, llvm::AllocaInst* all) {
    llvm::AllocaInst* sums[4];
    for (unsigned k = 0; k < 4; ++k) {
      sums[k] = variable(lanes_);
      w_.set(sums[k], term(b_.CreateAdd(first, number(k * lanes_)), lanes_));
    }
    w_.set(position_, b_.CreateAdd(first, number(4 * lanes_)));
    while_below(end, 4 * lanes_, [&](Value* i) {
      for (unsigned k = 0; k < 4; ++k) {
        Value* const next = term(b_.CreateAdd(i, number(k * lanes_)), lanes_);
        w_.set(sums[k], apply(w_.get(sums[k]), next, lanes_));
      }
    });
    Value* const low = apply(w_.get(sums[0]), w_.get(sums[1]), lanes_);
    Value* const high = apply(w_.get(sums[2]), w_.get(sums[3]), lanes_);
    w_.set(all, apply(low, high, lanes_));
  }

  // The lanes of a vector, the upper half upon the lower half until there is one.
  Value* halved(Value* vector) {
    for (unsigned width = lanes_; width > 1; width /= 2) {
      llvm::SmallVector<int, 8> low, high;
      for (unsigned i = 0; i < width / 2; ++i) {
        low.push_back(static_cast<int>(i));
        high.push_back(static_cast<int>(i + width / 2));
      }
      Value *x = b_.CreateShuffleVector(vector, low), *y = b_.CreateShuffleVector(vector, high);
      if (width == 2) {
        x = b_.CreateExtractElement(vector, uint64_t{0});
        y = b_.CreateExtractElement(vector, uint64_t{1});
      }
      vector = apply(x, y, width / 2);
    }
    return vector;
  }

  void take_block(Value* number_of_block) {
    if (adds()) {
      w_.set(total_, b_.CreateFAdd(w_.get(total_), b_.CreateFPCast(w_.get(sum_), b_.getDoubleTy())));
      return;
    }
    // Nothing is before the first block.
    either(
        b_.CreateICmpEQ(number_of_block, number(0)), [&] { w_.set(total_, w_.get(sum_)); },
        [&] { w_.set(total_, apply(w_.get(total_), w_.get(sum_), 1)); });
  }

  Value* finished(Value* n) {
    Value* result = w_.get(total_);
    if (op_ == ReduceOp::kMean) result = b_.CreateFDiv(result, b_.CreateSIToFP(n, b_.getDoubleTy()));
    if (op_ == ReduceOp::kL2) result = b_.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, result);
    return b_.CreateFPCast(result, scalar_);
  }

  llvm::AllocaInst* variable(unsigned count) { return w_.variable(lanes_of(scalar_, count), "sum"); }

  Value* apply(Value* x, Value* y, unsigned count) {
    plan::ElementwiseCode::Step step;
    step.op = adds() ? ElementwiseOp::kAdd : op_ == ReduceOp::kMax ? ElementwiseOp::kMax : ElementwiseOp::kMin;
    step.from = step.to = type_;
    step.argument_count = 2;
    const IrScope scope(b_, count, w_.request_.isa);
    return write_step(step, {x, y}, w_);
  }

  // `count` elements of the row, from element i on, as they are added up.
  Value* term(Value* i, unsigned count) {
    Values here = at_;
    here.push_back(i);
    Seen seen;
    Value* x = s_.elements(from_, here, count, seen);
    return squares() ? b_.CreateFMul(x, x) : x;
  }

  // fn(position) as long as `step` elements from `position_` on end before `end`.
  void while_below(Value* end, int64_t step, const std::function<void(Value*)>& fn) {
    Block* head = new_block("while");
    Block* body = new_block("do");
    Block* done = new_block("done");
    b_.CreateBr(head);
    b_.SetInsertPoint(head);
    Value* const next = b_.CreateAdd(w_.get(position_), number(step));
    b_.CreateCondBr(b_.CreateICmpSLE(next, end), body, done);
    b_.SetInsertPoint(body);
    fn(w_.get(position_));
    w_.set(position_, b_.CreateAdd(w_.get(position_), number(step)));
    b_.CreateBr(head);
    b_.SetInsertPoint(done);
  }

  void either(Value* condition, const std::function<void()>& yes, const std::function<void()>& no) {
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

  Block* new_block(const char* name) { return Block::Create(b_.getContext(), name, w_.function_, w_.exit_); }

  DynamicShapeWriter& s_;
  LoopWriter& w_;
  llvm::IRBuilder<>& b_;
  const uint32_t from_;
  const ReduceOp op_;
  const ElementType type_;
  const unsigned lanes_;
  llvm::Type* const scalar_;
  Values at_;                             // of the row
  llvm::AllocaInst* total_ = nullptr;     // of all blocks
  llvm::AllocaInst* sum_ = nullptr;       // of this one
  llvm::AllocaInst* position_ = nullptr;  // the element that comes next
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
