// Reductions of values whose sizes only the run knows.

#include "jit/dynamic_shapes.h"
#include "jit/lane_maths.h"

namespace treadle::jit {

using plan::DynamicCode;
using Kind = plan::DynamicCode::Kind;

void LoopWriter::DynamicShapeWriter::reduce(uint32_t s) {
  Tensor& to = tensors_.at(s);
  const Tensor place = place_of(to);
  const uint32_t from = inputs_.at(to.pc)[0];
  Value* const n = tensors_.at(from).sizes.back();
  Tensor kept = place;  // with an axis at the end in place of the one that goes
  if (!to.code->keep) kept.sizes.push_back(number(1)), kept.strides.push_back(number(0));
  Values at(kept.sizes.size());
  each_row(kept, 0, at, [&](Values& row) {
    row.pop_back();
    Value* const result = reduce_row(to, from, row, n);
    row.push_back(number(0));
    w_.store_at(address(kept, row), to.type, result);
  });
  to.data = place.data;
  to.strides = place.strides;
}

// As reduce_block of kernels/isa/reduce.cc, block by block, whose sums are added in double.
LoopWriter::Value* LoopWriter::DynamicShapeWriter::reduce_row(const Tensor& to, uint32_t s, const Values& at,
                                                              Value* n) {
  auto& b = w_.b_;
  using kernels::ElementwiseOp;
  using kernels::ReduceOp;
  const LaneMaths maths(w_.lanes_, w_, w_.request_.isa);
  const ReduceOp op = to.code->reduce;
  const bool adds = op != ReduceOp::kMax && op != ReduceOp::kMin;
  const ElementwiseOp combine = adds                   ? ElementwiseOp::kAdd
                                : op == ReduceOp::kMax ? ElementwiseOp::kMax
                                                       : ElementwiseOp::kMin;
  const ElementType type = to.type;
  const auto lanes = static_cast<unsigned>(maths.lanes_of_kernel(type));
  llvm::Type* const scalar = element_ir_type(b.getContext(), type);
  const auto apply = [&](Value* x, Value* y, unsigned count) {
    plan::ElementwiseCode::Step step;
    step.op = combine;
    step.from = step.to = type;
    step.argument_count = 2;
    const IrScope scope(b, count, w_.request_.isa);
    return write_step(step, {x, y}, w_);
  };
  const auto term = [&](Value* i, unsigned count) {
    Values here = at;
    here.push_back(i);
    Seen seen;
    Value* x = elements(s, here, count, seen);
    const bool squares = op == ReduceOp::kL2 || op == ReduceOp::kSumSquare;
    return squares ? b.CreateFMul(x, x) : x;
  };
  const auto variable = [&](unsigned count) { return w_.variable(lanes_of(scalar, count), "sum"); };
  auto* const total = w_.variable(adds ? b.getDoubleTy() : scalar, "total");
  if (adds) w_.set(total, llvm::ConstantFP::get(b.getDoubleTy(), 0));
  auto* const sum = variable(1);
  auto* const position = w_.variable(b.getInt64Ty(), "position");
  Value* const block = number(static_cast<int64_t>(kernels::reduce_block(type, false)));
  Value* const blocks = b.CreateUDiv(b.CreateAdd(n, b.CreateSub(block, number(1))), block);
  const auto while_below = [&](Value* end, int64_t step, const std::function<void(Value*)>& fn) {
    Block* head = Block::Create(b.getContext(), "while", w_.function_, w_.exit_);
    Block* body = Block::Create(b.getContext(), "do", w_.function_, w_.exit_);
    Block* done = Block::Create(b.getContext(), "done", w_.function_, w_.exit_);
    b.CreateBr(head);
    b.SetInsertPoint(head);
    Value* const next = b.CreateAdd(w_.get(position), number(step));
    b.CreateCondBr(b.CreateICmpSLE(next, end), body, done);
    b.SetInsertPoint(body);
    fn(w_.get(position));
    w_.set(position, b.CreateAdd(w_.get(position), number(step)));
    b.CreateBr(head);
    b.SetInsertPoint(done);
  };
  const auto either = [&](Value* condition, const std::function<void()>& yes, const std::function<void()>& no) {
    Block* first = Block::Create(b.getContext(), "yes", w_.function_, w_.exit_);
    Block* second = Block::Create(b.getContext(), "no", w_.function_, w_.exit_);
    Block* done = Block::Create(b.getContext(), "joined", w_.function_, w_.exit_);
    b.CreateCondBr(condition, first, second);
    b.SetInsertPoint(first);
    yes();
    b.CreateBr(done);
    b.SetInsertPoint(second);
    no();
    b.CreateBr(done);
    b.SetInsertPoint(done);
  };
  w_.count_up_to(blocks, [&](Value* number_of_block) {
    Value* const first = b.CreateMul(number_of_block, block);
    Value* const end = b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, b.CreateAdd(first, block), n);
    Value* const size = b.CreateSub(end, first);
    either(
        b.CreateICmpSLT(size, number(lanes)),
        [&] {
          w_.set(sum, term(first, 1));
          w_.set(position, b.CreateAdd(first, number(1)));
        },
        [&] {
          auto* const all = variable(lanes);
          either(
              b.CreateICmpSGE(size, number(4 * lanes)),
              [&] {
                llvm::AllocaInst* sums[4];
                for (unsigned k = 0; k < 4; ++k) {
                  sums[k] = variable(lanes);
                  w_.set(sums[k], term(b.CreateAdd(first, number(k * lanes)), lanes));
                }
                w_.set(position, b.CreateAdd(first, number(4 * lanes)));
                while_below(end, 4 * lanes, [&](Value* i) {
                  for (unsigned k = 0; k < 4; ++k) {
                    Value* const next = term(b.CreateAdd(i, number(k * lanes)), lanes);
                    w_.set(sums[k], apply(w_.get(sums[k]), next, lanes));
                  }
                });
                Value* const low = apply(w_.get(sums[0]), w_.get(sums[1]), lanes);
                Value* const high = apply(w_.get(sums[2]), w_.get(sums[3]), lanes);
                w_.set(all, apply(low, high, lanes));
              },
              [&] {
                w_.set(all, term(first, lanes));
                w_.set(position, b.CreateAdd(first, number(lanes)));
              });
          while_below(end, lanes, [&](Value* i) { w_.set(all, apply(w_.get(all), term(i, lanes), lanes)); });
          Value* halves = w_.get(all);
          for (unsigned width = lanes; width > 1; width /= 2) {
            llvm::SmallVector<int, 8> low, high;
            for (unsigned i = 0; i < width / 2; ++i) {
              low.push_back(static_cast<int>(i));
              high.push_back(static_cast<int>(i + width / 2));
            }
            Value *x = b.CreateShuffleVector(halves, low), *y = b.CreateShuffleVector(halves, high);
            if (width == 2) {
              x = b.CreateExtractElement(halves, uint64_t{0});
              y = b.CreateExtractElement(halves, uint64_t{1});
            }
            halves = apply(x, y, width / 2);
          }
          w_.set(sum, halves);
        });
    while_below(end, 1, [&](Value* i) { w_.set(sum, apply(w_.get(sum), term(i, 1), 1)); });
    if (adds) {
      w_.set(total, b.CreateFAdd(w_.get(total), b.CreateFPCast(w_.get(sum), b.getDoubleTy())));
    } else {
      // Nothing is before the first block.
      Value* const is_first = b.CreateICmpEQ(number_of_block, number(0));
      either(
          is_first, [&] { w_.set(total, w_.get(sum)); }, [&] { w_.set(total, apply(w_.get(total), w_.get(sum), 1)); });
    }
  });
  Value* result = w_.get(total);
  if (op == ReduceOp::kMean) result = b.CreateFDiv(result, b.CreateSIToFP(n, b.getDoubleTy()));
  if (op == ReduceOp::kL2) result = b.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, result);
  return b.CreateFPCast(result, scalar);
}

}  // namespace treadle::jit
