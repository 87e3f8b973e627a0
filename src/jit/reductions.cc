// Elementwise work whose results are reduced as they are computed (plan::ElementwiseCode::reductions). The order of
// every sum is that of kernels/sum_order.h: neighbours go to the lanes of four vectors, whose sums are folded at the
// end of each block, or rows are added to rows where the innermost axis is kept. Sums begin with what changes nothing
// (-0 for floats), so that the first iteration is written as all others are.

#include "jit/reductions.h"

#include <llvm/IR/Constants.h>

#include "jit/lane_maths.h"
#include "jit/nest_writer.h"
#include "kernels/sum_order.h"

namespace treadle::jit {

using kernels::ElementwiseOp;
using kernels::ReduceOp;
using plan::ElementwiseCode;
using plan::Lines;

namespace {

constexpr auto kBlock = static_cast<int64_t>(kernels::kReduceBlock);

// Sums of bools that are cast to integers are counted in 32 bits.
bool counts(const ElementwiseCode& code, const ElementwiseCode::Reduction& reduction) {
  const ElementwiseCode::Step& step = code.steps[reduction.step];
  const auto number = static_cast<uint16_t>(code.inputs.size() + reduction.step);
  const bool adds = reduction.op == ReduceOp::kSum || reduction.op == ReduceOp::kMean || reduction.op == ReduceOp::kL1;
  if (!adds || !step.converts || step.from != ElementType::kBool || is_float(step.to)) return false;
  if (code.lines.n > INT32_MAX) return false;
  const auto reads = [&](const ElementwiseCode::Step& other) {
    return std::find(other.arguments, other.arguments + other.argument_count, number) !=
           other.arguments + other.argument_count;
  };
  const auto is_other = [&](const auto& out) { return out.step == reduction.step; };
  return std::none_of(code.steps.begin(), code.steps.end(), reads) &&
         std::none_of(code.outputs.begin(), code.outputs.end(), is_other) &&
         std::count_if(code.reductions.begin(), code.reductions.end(), is_other) == 1;
}

// The code with what is only counted made in 32 bits.
ElementwiseCode narrowed(ElementwiseCode code) {
  for (const ElementwiseCode::Reduction& reduction : code.reductions) {
    if (counts(code, reduction)) code.steps[reduction.step].to = ElementType::kInt32;
  }
  return code;
}

}  // namespace

int64_t rows_of_tile(const Lines& lines, int64_t along, const Chunks& chunks) {
  return std::clamp<int64_t>(4 * static_cast<int64_t>(chunks.full) / lines.n, 1, std::min<int64_t>(along, chunks.full));
}

std::optional<Nest> nest_of_lines(const ElementwiseCode& code) {
  const Lines& lines = code.lines;
  auto nest = common_nest(code, {lines.inner, lines.n * lines.inner});
  // Either axis of a line is one dimension.
  if (!nest || nest->sizes.back() != (lines.inner > 1 ? lines.inner : lines.n)) return std::nullopt;
  if (lines.inner > 1 && (nest->sizes.size() < 2 || nest->sizes[nest->sizes.size() - 2] != lines.n)) {
    return std::nullopt;
  }
  return nest;
}

// What is written for one instruction.
class LoopWriter::ReductionWriter {
 public:
  ReductionWriter(LoopWriter& writer, const ElementwiseCode& code, Nest nest)
      : w_(writer),
        b_(writer.b_),
        code_(narrowed(code)),
        original_(code),
        lines_(code.lines),
        maths_(writer.lanes_, writer, writer.request_.isa),
        tile_(4 * static_cast<int64_t>(writer.chunks_.full)) {
    nest.split = nest.sizes.size();
    nest.step = tile_;
    const bool by_rows = lines_.inner == 1 && w_.chunks_.is_short(lines_.n);
    if (by_rows) {
      nest.split = nest.sizes.size() - 1;
      nest.step = rows_of_tile(lines_, nest.sizes[nest.split - 1], w_.chunks_);
    }
    walk_.emplace(writer, code_, std::move(nest));
    for (const ElementwiseCode::Reduction& reduction : code_.reductions) open(reduction);
    by_rows ? write_short_rows() : walk_lines(0, walk_->begin());
  }

 private:
  using Positions = NestWriter::Positions;

  // One reduction.
  struct Sum {
    const ElementwiseCode::Reduction* code = nullptr;
    ElementType stored{};  // of the operand and the result
    ElementType made{};    // of what the step makes
    ElementType type{};    // of what is added up
    ElementType total{};   // of what sums of blocks are added up in
    ElementwiseOp op = ElementwiseOp::kAdd;
    std::vector<llvm::AllocaInst*> lanes, totals;
  };

  void open(const ElementwiseCode::Reduction& reduction) {
    Sum sum;
    sum.code = &reduction;
    sum.stored = original_.steps[reduction.step].to;
    sum.made = code_.steps[reduction.step].to;
    const bool narrow = sum.made != sum.stored;
    const bool has_sign = sum.stored == ElementType::kInt32 || sum.stored == ElementType::kInt64;
    const ElementType wide = has_sign ? ElementType::kInt64 : ElementType::kUint64;
    sum.type = is_float(sum.stored) || narrow ? sum.made : wide;
    if (reduction.op == ReduceOp::kMax) sum.op = ElementwiseOp::kMax;
    if (reduction.op == ReduceOp::kMin) sum.op = ElementwiseOp::kMin;
    if (sum.op != ElementwiseOp::kAdd && !is_float(sum.stored)) sum.type = sum.stored;
    sum.total = sum.type;
    if (is_float(sum.type) && sum.op == ElementwiseOp::kAdd) sum.total = ElementType::kDouble;
    sums_.push_back(std::move(sum));
  }

  llvm::Type* ir_type(ElementType type) const { return element_ir_type(b_.getContext(), type); }
  Value* number(int64_t value) const { return b_.getInt64(static_cast<uint64_t>(value)); }

  // What changes nothing.
  llvm::Constant* identity(ElementwiseOp op, ElementType type) const {
    llvm::Type* t = ir_type(type);
    if (is_float(type)) {
      if (op == ElementwiseOp::kAdd) return llvm::ConstantFP::getNegativeZero(t);
      return llvm::ConstantFP::getInfinity(t, op == ElementwiseOp::kMax);
    }
    if (op == ElementwiseOp::kAdd) return llvm::ConstantInt::get(t, 0);
    const bool has_sign = type == ElementType::kInt32 || type == ElementType::kInt64;
    const unsigned bits = t->getIntegerBitWidth();
    using llvm::APInt;
    const APInt value = op == ElementwiseOp::kMax
                            ? (has_sign ? APInt::getSignedMinValue(bits) : APInt::getMinValue(bits))
                            : (has_sign ? APInt::getSignedMaxValue(bits) : APInt::getMaxValue(bits));
    return llvm::ConstantInt::get(t, value);
  }

  // --- values in variables ---

  std::vector<llvm::AllocaInst*> variables(const Lanes& like) {
    std::vector<llvm::AllocaInst*> made;
    for (Value* v : like.vectors) made.push_back(w_.variable(v->getType(), "sum"));
    return made;
  }
  void set(std::vector<llvm::AllocaInst*>& to, const Lanes& from) {
    if (to.empty()) to = variables(from);
    for (size_t c = 0; c < to.size(); ++c) w_.set(to[c], from.vectors[c]);
  }
  Lanes get(const std::vector<llvm::AllocaInst*>& from, ElementType type, int64_t count) {
    Lanes lanes{ir_type(type), count, {}};
    for (auto* variable : from) lanes.vectors.push_back(w_.get(variable));
    return lanes;
  }

  // What a tile adds.
  Lanes terms(const Sum& sum, const std::vector<Lanes>& values) const {
    Lanes x = maths_.convert(values[code_.inputs.size() + sum.code->step], sum.made, sum.type);
    if (sum.code->op == ReduceOp::kL1) return maths_.apply(ElementwiseOp::kAbs, sum.type, {&x});
    if (sum.code->op == ReduceOp::kL2 || sum.code->op == ReduceOp::kSumSquare) {
      return maths_.apply(ElementwiseOp::kMul, sum.type, {&x, &x});
    }
    return x;
  }

  // Elements that are summed side by side.
  int64_t lanes_of(const Sum& sum) const { return 4 * maths_.lanes_of_kernel(sum.type); }

  std::vector<Lanes> compute(int64_t count, const Positions& at) {
    const std::vector<Lanes> values = walk_->values(count, at);
    walk_->store(at, values);
    std::vector<Lanes> all;
    for (const Sum& sum : sums_) all.push_back(terms(sum, values));
    return all;
  }

  // --- lines ---

  void walk_lines(size_t d, const Positions& at) {
    const size_t outer = walk_->nest().sizes.size() - (lines_.inner > 1 ? 2 : 1);
    if (d < outer) {
      w_.count_to(walk_->nest().sizes[d], [&](Value* i) { walk_lines(d + 1, walk_->moved(at, d, 1, i)); });
      return;
    }
    Value* line = b_.CreateExactUDiv(at.back(), number(lines_.n));  // where the results of the line begin
    if (lines_.inner == 1) return write_line(outer, 1, line, at);
    const int64_t some = std::min(lines_.inner, tile_), repeats = lines_.inner / some, rest = lines_.inner % some;
    const auto columns = [&](int64_t count, Value* repeat) {
      Value* place = b_.CreateAdd(line, b_.CreateMul(repeat, number(some)));
      write_line(outer, count, place, walk_->moved(at, outer + 1, some, repeat));
    };
    w_.count_to(repeats, [&](Value* i) { columns(some, i); });
    if (rest > 0) columns(rest, number(repeats));
  }

  // `columns` results, from block to block along dimension d.
  void write_line(size_t d, int64_t columns, Value* place, const Positions& at) {
    for (Sum& sum : sums_) {
      sum.lanes.clear();
      sum.totals.clear();
      const bool adds = sum.op == ElementwiseOp::kAdd;
      llvm::Constant* start = adds ? llvm::Constant::getNullValue(ir_type(sum.total)) : identity(sum.op, sum.total);
      set(sum.totals, w_.lanes_.splat(start, columns));
    }
    // Only sums of floats are cut into blocks.
    const bool cuts = std::any_of(sums_.begin(), sums_.end(), [](const Sum& sum) { return sum.total != sum.type; });
    const int64_t block = cuts ? kBlock : lines_.n, blocks = lines_.n / block, rest = lines_.n % block;
    w_.count_to(blocks, [&](Value* i) { write_block(d, columns, block, walk_->moved(at, d, block, i)); });
    if (rest > 0) write_block(d, columns, rest, walk_->moved(at, d, block, number(blocks)));
    for (const Sum& sum : sums_) finish(sum, columns, place);
  }

  void write_block(size_t d, int64_t columns, int64_t size, const Positions& at) {
    const std::vector<Lanes> parts = lines_.inner > 1 ? sum_rows(d, columns, size, at) : sum_neighbours(d, size, at);
    for (size_t i = 0; i < sums_.size(); ++i) {
      Sum& sum = sums_[i];
      const Lanes total = get(sum.totals, sum.total, columns), part = maths_.convert(parts[i], sum.type, sum.total);
      set(sum.totals, maths_.apply(sum.op, sum.total, {&total, &part}));
    }
  }

  void start_lanes(int64_t columns) {
    for (Sum& sum : sums_) {
      const int64_t count = columns > 0 ? columns : lanes_of(sum);
      set(sum.lanes, w_.lanes_.splat(identity(sum.op, sum.type), count));
    }
  }

  // Rows of `columns` elements one after the other.
  std::vector<Lanes> sum_rows(size_t d, int64_t columns, int64_t rows, const Positions& at) {
    start_lanes(columns);
    w_.count_to(rows, [&](Value* i) {
      const std::vector<Lanes> next = compute(columns, walk_->moved(at, d, 1, i));
      for (size_t k = 0; k < sums_.size(); ++k) {
        const Lanes sum = get(sums_[k].lanes, sums_[k].type, columns);
        set(sums_[k].lanes, maths_.apply(sums_[k].op, sums_[k].type, {&sum, &next[k]}));
      }
    });
    std::vector<Lanes> parts;
    for (const Sum& sum : sums_) parts.push_back(get(sum.lanes, sum.type, columns));
    return parts;
  }

  // Neighbours in the lanes of four vectors, tile by tile; what is left is taken with their sums.
  std::vector<Lanes> sum_neighbours(size_t d, int64_t size, const Positions& at) {
    const int64_t repeats = size / tile_, rest = size % tile_;
    if (repeats > 0) {
      start_lanes(0);
      w_.count_to(repeats, [&](Value* i) {
        const std::vector<Lanes> next = compute(tile_, walk_->moved(at, d, tile_, i));
        for (size_t k = 0; k < sums_.size(); ++k) take_in(sums_[k], next[k]);
      });
    }
    std::vector<Lanes> left, parts;
    if (rest > 0) left = compute(rest, walk_->moved(at, d, tile_, number(repeats)));
    for (size_t k = 0; k < sums_.size(); ++k) {
      const Sum& sum = sums_[k];
      Lanes row = rest > 0 ? left[k] : Lanes();
      if (repeats > 0) {
        const Lanes before = get(sum.lanes, sum.type, lanes_of(sum));
        row = rest > 0 ? w_.lanes_.join(before, row) : before;
      }
      parts.push_back(maths_.reduce_block(sum.op, sum.type, row, {0}, row.count));
    }
    return parts;
  }

  // A tile as kernels/sum_order.h takes it in: four vectors count as one.
  struct Tile : kernels::sum_order::KnownLength {
    const ReductionWriter& writer;
    const Sum& sum;
    const Lanes& terms;

    size_t lanes() const { return static_cast<size_t>(writer.lanes_of(sum)); }
    Lanes vector(size_t i) const {
      return writer.w_.lanes_.pick(terms, range(writer.lanes_of(sum), static_cast<int64_t>(i)));
    }
    Lanes combine(const Lanes& x, const Lanes& y) const { return writer.maths_.apply(sum.op, sum.type, {&x, &y}); }
  };

  void take_in(Sum& sum, const Lanes& next) {
    const Tile tile{{static_cast<size_t>(next.count)}, *this, sum, next};
    Lanes lanes = get(sum.lanes, sum.type, lanes_of(sum));
    size_t i = tile.first();
    kernels::sum_order::take_vectors(tile, i, lanes);
    set(sum.lanes, lanes);
  }

  // --- results ---

  plan::ReductionCode reduction_code(const Sum& sum) const {
    plan::ReductionCode code;
    code.op = sum.code->op;
    code.type = sum.stored;
    return code;
  }

  void finish(const Sum& sum, int64_t columns, Value* place) {
    Lanes total = get(sum.totals, sum.total, columns);
    ElementType type = sum.total;
    if (sum.made != sum.stored) {
      total = maths_.convert(total, type, ElementType::kInt64);
      type = ElementType::kInt64;
    }
    const Lanes result = maths_.finish(reduction_code(sum), type, total, lines_.n);
    if (is_single(lines_)) return w_.write_flat(sum.code->slot, sum.stored, result);
    store(sum, place, result);
  }

  void store(const Sum& sum, Value* place, const Lanes& result) {
    w_.store_flat(b_.CreateGEP(ir_type(sum.stored), w_.pointer(sum.code->slot), place), sum.stored, result);
  }

  // Lines of a few elements: several at a time in registers.
  void write_short_rows() {
    walk_->write([&](const Positions& at, const std::vector<Lanes>& values) {
      walk_->store(at, values);
      Value* place = b_.CreateExactUDiv(at.back(), number(lines_.n));
      for (const Sum& sum : sums_) {
        const Lanes& from = values[code_.inputs.size() + sum.code->step];
        plan::ReductionCode code = reduction_code(sum);
        code.type = sum.made;
        code.kept = {from.count / lines_.n};
        code.kept_strides = {lines_.n};
        code.reduced = {lines_.n};
        code.reduced_strides = {1};
        store(sum, place, maths_.convert(maths_.reduce(code, from), sum.made, sum.stored));
      }
    });
  }

  LoopWriter& w_;
  llvm::IRBuilder<>& b_;
  const ElementwiseCode code_;
  const ElementwiseCode& original_;
  const Lines lines_;
  const LaneMaths maths_;
  const int64_t tile_;
  std::optional<NestWriter> walk_;
  std::vector<Sum> sums_;
};

void LoopWriter::write_reductions(const ElementwiseCode& code) {
  ReductionWriter(*this, code, *nest_of_lines(code));
}

}  // namespace treadle::jit
