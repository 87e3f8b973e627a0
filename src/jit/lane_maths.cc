#include "jit/lane_maths.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "kernels/sum_order.h"
#include "kernels/written_operations.h"

namespace treadle::jit {

using kernels::ElementwiseOp;
using kernels::ReduceOp;
using llvm::Value;
using plan::ElementwiseCode;

namespace {

// What integers are accumulated in.
ElementType wide_integer(ElementType type) {
  return is_signed_integer(type) ? ElementType::kInt64 : ElementType::kUint64;
}

int64_t product_of(const Dims& dims) {
  int64_t product = 1;
  for (const int64_t size : dims) product *= size;
  return product;
}

// Offsets of all positions of some dimensions, in row-major order.
Numbers offsets_of(const Dims& dims, const Dims& strides) {
  Numbers offsets{0};
  for (size_t d = 0; d < dims.size(); ++d) {
    Numbers longer;
    for (const int64_t offset : offsets) {
      for (int64_t i = 0; i < dims[d]; ++i) longer.push_back(offset + i * strides[d]);
    }
    offsets = std::move(longer);
  }
  return offsets;
}

}  // namespace

// --- the elements ----------------------------------------------------------------------------------------------------

Lanes LaneMaths::apply(ElementwiseOp op, ElementType type, std::initializer_list<const Lanes*> arguments) const {
  ElementwiseCode::Step step;
  step.op = op;
  step.from = step.to = type;
  step.argument_count = static_cast<uint8_t>(arguments.size());
  return lanes_.map(arguments, [&](llvm::ArrayRef<Value*> vectors, unsigned lanes) {
    const IrScope scope(lanes_.ir(), lanes, isa_);
    return write_step(step, vectors, host_);
  });
}

Lanes LaneMaths::convert(const Lanes& from, ElementType type, ElementType to) const {
  if (type == to) return from;
  ElementwiseCode::Step step;
  step.converts = true;
  step.from = type;
  step.to = to;
  step.argument_count = 1;
  return lanes_.map({&from}, [&](llvm::ArrayRef<Value*> vectors, unsigned lanes) {
    const IrScope scope(lanes_.ir(), lanes, isa_);
    return write_step(step, vectors, host_);
  });
}

Lanes LaneMaths::multiply_add(ElementType type, const Lanes& a, const Lanes& b, const Lanes& c) const {
  if (is_float(type) && vector_bytes_ > 16) {
    return lanes_.map({&a, &b, &c}, [&](llvm::ArrayRef<Value*> v, unsigned) {
      return lanes_.ir().CreateIntrinsic(llvm::Intrinsic::fma, {v[0]->getType()}, v);
    });
  }
  const Lanes product = apply(ElementwiseOp::kMul, type, {&a, &b});
  return apply(ElementwiseOp::kAdd, type, {&product, &c});
}

Lanes LaneMaths::number(ElementType type, double value, int64_t count) const {
  llvm::Type* scalar = element_ir_type(lanes_.ir().getContext(), type);
  if (is_float(type)) return lanes_.splat(llvm::ConstantFP::get(scalar, value), count);
  return lanes_.splat(llvm::ConstantInt::get(scalar, static_cast<uint64_t>(static_cast<int64_t>(value))), count);
}

Lanes LaneMaths::constants(const Numbers& numbers) const {
  auto& context = lanes_.ir().getContext();
  const Chunks& chunks = lanes_.chunks();
  const auto count = static_cast<int64_t>(numbers.size());
  Lanes result{element_ir_type(context, ElementType::kInt32), count, {}};
  for (size_t c = 0; c < chunks.size(count); ++c) {
    const auto first = numbers.begin() + static_cast<std::ptrdiff_t>(c) * chunks.full;
    const llvm::SmallVector<uint32_t, 16> lanes(first, first + chunks.lanes(count, c));
    llvm::Constant* vector = llvm::ConstantDataVector::get(context, lanes);
    result.vectors.push_back(lanes.size() == 1 ? vector->getAggregateElement(0u) : vector);
  }
  return result;
}

Lanes LaneMaths::at(const Lanes& from, const Numbers& bases, int64_t offset) const {
  Numbers numbers = bases;
  for (int64_t& n : numbers) n += offset;
  return lanes_.pick(from, numbers);
}

// --- reductions ------------------------------------------------------------------------------------------------------

// Rows of n elements that are combined at once, in the order of kernels/sum_order.h. A value has its part of each row,
// one behind the other.
struct LaneMaths::Rows : kernels::sum_order::KnownLength {
  const LaneMaths& maths;
  ElementwiseOp op;
  ElementType type;
  const Lanes& from;
  const Numbers& bases;  // where each row begins
  int64_t stride = 1;    // between its elements

  using Element = Lanes;
  size_t lanes() const { return static_cast<size_t>(maths.lanes_of_kernel(type)); }
  Lanes element(size_t i) const { return maths.at(from, bases, static_cast<int64_t>(i) * stride); }
  Lanes vector(size_t i) const {
    Numbers numbers;
    for (const int64_t base : bases) {
      const Numbers row = range(maths.lanes_of_kernel(type), base + static_cast<int64_t>(i));
      numbers.insert(numbers.end(), row.begin(), row.end());
    }
    return maths.lanes_.pick(from, numbers);
  }
  static Lanes new_vector() { return {}; }
  Lanes combine(const Lanes& x, const Lanes& y) const { return maths.apply(op, type, {&x, &y}); }
  template <class Fn>
  Lanes split(const Lanes& v, const Fn& fn) const {
    const auto count = static_cast<int64_t>(bases.size()), width = v.count / count;
    if (width == 1) return v;
    Numbers low, high;
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = 0; i < width / 2; ++i) {
        low.push_back(r * width + i);
        high.push_back(r * width + i + width / 2);
      }
    }
    const Lanes lower = maths.lanes_.pick(v, low), upper = maths.lanes_.pick(v, high);
    return fn(lower, upper);
  }
};

Lanes LaneMaths::reduce_block(ElementwiseOp op, ElementType type, const Lanes& from, const Numbers& bases,
                              int64_t n) const {
  Lanes total;
  kernels::sum_order::combine_block(Rows{{static_cast<size_t>(n)}, *this, op, type, from, bases}, total);
  return total;
}

Lanes LaneMaths::chain(ElementwiseOp op, ElementType type, const Lanes& from, const Numbers& bases, int64_t n,
                       int64_t stride, const Lanes* before) const {
  const Rows rows{{static_cast<size_t>(n)}, *this, op, type, from, bases, stride};
  Lanes total;
  if (!before) return kernels::sum_order::combine_in_order(rows, total), total;
  total = *before;
  size_t i = rows.first();
  return kernels::sum_order::take_elements(rows, i, total), total;
}

bool LaneMaths::supports(const plan::ReductionCode& code) {
  if (code.columns && !code.reduced.empty() && code.reduced.back() > kLongestChain) return false;
  switch (code.op) {
    case ReduceOp::kLogSum:
    case ReduceOp::kLogSumExp:
      return false;
    case ReduceOp::kL2:
      return is_float(code.type);
    default:
      return code.type != ElementType::kBool;
  }
}

Lanes LaneMaths::reduce(const plan::ReductionCode& code, Lanes from) const {
  const ElementwiseOp op = kernels::combining(code.op);
  ElementType type = wide_type(code.type);
  from = convert(from, code.type, type);
  const bool is_wide = !is_float(type) || code.op == ReduceOp::kProd;
  if (is_wide) {
    const ElementType wide = is_float(type) ? ElementType::kDouble : wide_integer(type);
    from = convert(from, type, wide);
    type = wide;
  }
  if (code.op == ReduceOp::kL1) from = apply(ElementwiseOp::kAbs, type, {&from});
  if (code.op == ReduceOp::kL2 || code.op == ReduceOp::kSumSquare) {
    from = apply(ElementwiseOp::kMul, type, {&from, &from});
  }
  const Numbers bases = offsets_of(code.kept, code.kept_strides);
  Dims outer = code.reduced, outer_strides = code.reduced_strides;
  const int64_t n = outer.empty() ? 1 : outer.back(), stride = outer.empty() ? 0 : outer_strides.back();
  if (!outer.empty()) outer.pop_back(), outer_strides.pop_back();

  const bool in_order = op == ElementwiseOp::kMul;
  assert(!in_order || code.columns || static_cast<size_t>(n) < kernels::sum_order::kLeastInLanes);
  const auto block = in_order ? n : static_cast<int64_t>(kernels::reduce_block(code.type, code.columns));
  Lanes total;
  for (const int64_t offset : offsets_of(outer, outer_strides)) {
    for (int64_t first = 0; first < n; first += block) {
      const int64_t size = std::min(block, n - first);
      Numbers here = bases;
      for (int64_t& base : here) base += offset + first * stride;
      if (in_order && total.count > 0) {
        total = chain(op, type, from, here, size, stride, &total);
        continue;
      }
      Lanes part = code.columns || in_order ? chain(op, type, from, here, size, stride)
                                            : reduce_block(op, type, from, here, size);
      // Sums of blocks are added in double, to begin with to 0.
      const bool adds = op == ElementwiseOp::kAdd && is_float(type);
      if (adds) part = convert(part, type, ElementType::kDouble);
      if (total.count == 0 && adds) total = number(ElementType::kDouble, 0, part.count);
      const ElementType sum_type = adds ? ElementType::kDouble : type;
      total = total.count == 0 ? part : apply(op, sum_type, {&total, &part});
    }
  }
  if (op == ElementwiseOp::kAdd && is_float(type)) type = ElementType::kDouble;
  return finish(code, type, total, n * product_of(outer));
}

Lanes LaneMaths::finish(const plan::ReductionCode& code, ElementType type, Lanes sum, int64_t count) const {
  if (code.op == ReduceOp::kMean) {
    const Lanes divisor = number(type, static_cast<double>(count), sum.count);
    if (is_float(type)) {
      sum = apply(ElementwiseOp::kDiv, type, {&sum, &divisor});
    } else {
      sum = lanes_.map({&sum, &divisor}, [&](llvm::ArrayRef<Value*> v, unsigned) {
        auto& b = lanes_.ir();
        return type == ElementType::kInt64 ? b.CreateSDiv(v[0], v[1]) : b.CreateUDiv(v[0], v[1]);
      });
    }
  }
  if (code.op == ReduceOp::kL2) sum = apply(ElementwiseOp::kSqrt, type, {&sum});
  // Doubles are rounded to floats before narrow floats are made of them.
  const ElementType wide = wide_type(code.type);
  return convert(convert(sum, type, wide), wide, code.type);
}

// --- extremes --------------------------------------------------------------------------------------------------------

bool LaneMaths::supports(const plan::ArgReductionCode& code) {
  return code.type != ElementType::kBool && code.n <= kLongestChain;
}

// Of equal elements the first or the last; a NaN is more extreme than any number.
Lanes LaneMaths::extreme(const plan::ArgReductionCode& code, const Lanes& stored, const Numbers& bases,
                         int64_t stride) const {
  const Lanes from = convert(stored, code.type, wide_type(code.type));
  auto& b = lanes_.ir();
  const bool real = is_float(code.type);
  const bool has_sign = is_signed_integer(code.type);
  auto beats = [&](Value* x, Value* best) {
    using P = llvm::CmpInst;
    if (!real) {
      const P::Predicate least = has_sign ? P::ICMP_SLT : P::ICMP_ULT, greatest = P::getSwappedPredicate(least);
      const P::Predicate strict = code.greatest ? greatest : least;
      return b.CreateICmp(code.last ? P::getNonStrictPredicate(strict) : strict, x, best);
    }
    // Of two NaNs the first or the last.
    if (code.last) {
      Value* more = b.CreateFCmp(code.greatest ? P::FCMP_OGE : P::FCMP_OLE, x, best);
      return b.CreateOr(more, b.CreateFCmpUNO(x, x));
    }
    Value* more = b.CreateFCmp(code.greatest ? P::FCMP_UGT : P::FCMP_ULT, x, best);
    return b.CreateAnd(more, b.CreateFCmpORD(best, best));
  };
  auto better = [&](const Extreme& x, const Extreme& best) {
    const Lanes wins =
        lanes_.map({&x.value, &best.value}, [&](llvm::ArrayRef<Value*> v, unsigned) { return beats(v[0], v[1]); });
    auto choose = [&](llvm::ArrayRef<Value*> v, unsigned) { return b.CreateSelect(v[0], v[1], v[2]); };
    return Extreme{lanes_.map({&wins, &x.value, &best.value}, choose),
                   lanes_.map({&wins, &x.place, &best.place}, choose)};
  };
  const auto results = static_cast<int64_t>(bases.size());
  if (stride == 1) {
    Numbers all, places;
    for (const int64_t base : bases) {
      for (int64_t i = 0; i < code.n; ++i) all.push_back(base + i), places.push_back(i);
    }
    const Lanes rows = lanes_.pick(from, all);
    return convert(knock_out({rows, constants(places)}, results, better).place, ElementType::kInt32,
                   ElementType::kInt64);
  }
  Extreme best{at(from, bases, 0), number(ElementType::kInt32, 0, results)};
  for (int64_t i = 1; i < code.n; ++i) {
    best = better({at(from, bases, i * stride), number(ElementType::kInt32, static_cast<double>(i), results)}, best);
  }
  return convert(best.place, ElementType::kInt32, ElementType::kInt64);
}

// Rows as long as each other: neighbours against each other, then the winners, until one of each row is left. What lies
// further back challenges what lies before it, as in a walk along the row.
LaneMaths::Extreme LaneMaths::knock_out(Extreme rows, int64_t count, const Contest& better) const {
  for (int64_t width = rows.value.count / count; width > 1; width = (width + 1) / 2) {
    Numbers first, second;
    for (int64_t r = 0; r < count; ++r) {
      for (int64_t i = 0; i < width; i += 2) {
        first.push_back(r * width + i);
        second.push_back(r * width + std::min(i + 1, width - 1));  // the last of an odd number meets itself
      }
    }
    rows = better({lanes_.pick(rows.value, second), lanes_.pick(rows.place, second)},
                  {lanes_.pick(rows.value, first), lanes_.pick(rows.place, first)});
  }
  return rows;
}

// --- products --------------------------------------------------------------------------------------------------------

bool LaneMaths::supports(const plan::ProductCode& code) {
  const kernels::GemmShape& s = code.shape;
  const bool clamps = s.low != -__builtin_inff() || s.high != __builtin_inff();
  // Element by element. At 12 x 12 x 12 that takes 0.9 of the kernel's time, at 12 x 13 x 12 as long (measured,
  // AVX-512).
  constexpr int64_t kMostSteps = 2048;
  return code.type != ElementType::kBool && !clamps && code.c_count * s.k <= kMostSteps;
}

Lanes LaneMaths::product(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Lanes* bias) const {
  const kernels::GemmShape& s = code.shape;
  // Where the row of A and the column of B of each element begin, and its bias.
  Numbers a_rows(static_cast<size_t>(code.c_count)), b_columns = a_rows, biases = a_rows;
  Numbers a_offsets{0}, b_offsets{0}, c_offsets{0};
  for (const auto& level : code.stack) {
    Numbers longer[3];
    for (size_t m = 0; m < a_offsets.size(); ++m) {
      for (int64_t i = 0; i < level.size; ++i) {
        longer[0].push_back(a_offsets[m] + i * level.a);
        longer[1].push_back(b_offsets[m] + i * level.b);
        longer[2].push_back(c_offsets[m] + i * level.c);
      }
    }
    a_offsets = std::move(longer[0]), b_offsets = std::move(longer[1]), c_offsets = std::move(longer[2]);
  }
  for (size_t m = 0; m < a_offsets.size(); ++m) {
    for (int64_t i = 0; i < s.m; ++i) {
      for (int64_t j = 0; j < s.n; ++j) {
        const auto at = static_cast<size_t>(c_offsets[m] + i * s.c_row + j);
        a_rows[at] = a_offsets[m] + i * s.a_row;
        b_columns[at] = b_offsets[m] + j * s.b_col;
        biases[at] = i * s.bias_row + j * s.bias_col;
      }
    }
  }
  const bool is_dot = s.n <= kernels::kGemmDotColumns, is_short = s.k <= kernels::kGemmShortDot;
  Lanes sum = is_dot && is_short ? short_dots(code, a, b, a_rows, b_columns)
              : is_dot           ? dots(code, a, b, a_rows, b_columns)
                                 : sum_products(code, a, b, a_rows, b_columns);
  if (!bias) return with_bias(code, sum, nullptr);
  const Lanes addend = lanes_.pick(*bias, biases);
  return with_bias(code, sum, &addend);
}

Lanes LaneMaths::with_bias(const plan::ProductCode& code, Lanes sum, const Lanes* bias) const {
  auto scaled = [&](const Lanes& x, double by) {
    if (by == 1) return x;
    const Lanes factor =
        number(code.type, is_float(code.type) ? by : static_cast<double>(static_cast<int64_t>(by)), x.count);
    return apply(ElementwiseOp::kMul, code.type, {&x, &factor});
  };
  sum = scaled(sum, code.shape.alpha);
  if (!bias) return sum;
  const Lanes addend = scaled(*bias, code.shape.beta);
  return apply(ElementwiseOp::kAdd, code.type, {&sum, &addend});
}

// Every element is one chain over k.
Lanes LaneMaths::sum_products(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Numbers& a_rows,
                              const Numbers& b_columns) const {
  Lanes sum = number(code.type, 0, code.c_count);
  for (int64_t p = 0; p < code.shape.k; ++p) {
    const Lanes x = at(a, a_rows, p * code.shape.a_col), y = at(b, b_columns, p * code.shape.b_row);
    sum = multiply_add(code.type, x, y, sum);
  }
  return sum;
}

// As ReduceSum sums rows of products.
Lanes LaneMaths::short_dots(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Numbers& a_rows,
                            const Numbers& b_columns) const {
  const kernels::GemmShape& s = code.shape;
  Numbers a_numbers, b_numbers, rows;
  for (size_t r = 0; r < a_rows.size(); ++r) {
    rows.push_back(static_cast<int64_t>(r) * s.k);
    for (int64_t p = 0; p < s.k; ++p) {
      a_numbers.push_back(a_rows[r] + p * s.a_col);
      b_numbers.push_back(b_columns[r] + p * s.b_row);
    }
  }
  const Lanes x = lanes_.pick(a, a_numbers), y = lanes_.pick(b, b_numbers);
  const Lanes products = apply(ElementwiseOp::kMul, code.type, {&x, &y});
  const Lanes sums = reduce_block(ElementwiseOp::kAdd, code.type, products, rows, s.k);
  const Lanes zero = number(code.type, 0, sums.count);
  return apply(ElementwiseOp::kAdd, code.type, {&sums, &zero});  // never -0
}

// Element p of a product goes to lane p % lanes of sum p / lanes % 4. Lanes that get none stay 0; they are left out as
// far as they can be: to add them changes a sum of -0 only, and once.
Lanes LaneMaths::dots(const plan::ProductCode& code, const Lanes& a, const Lanes& b, const Numbers& a_rows,
                      const Numbers& b_columns) const {
  const kernels::GemmShape& s = code.shape;
  const int64_t lanes = lanes_of_kernel(code.type);
  const auto width = std::min(lanes, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(s.k))));
  const auto results = static_cast<int64_t>(a_rows.size());
  const Lanes zero = number(code.type, 0, results * width);
  Lanes sums[4] = {zero, zero, zero, zero};
  for (int64_t first = 0; first < s.k; first += lanes) {
    Lanes& sum = sums[first / lanes % 4];
    Numbers a_numbers, b_numbers;
    bool partial = false;
    for (size_t r = 0; r < a_rows.size(); ++r) {
      for (int64_t i = 0; i < width; ++i) {
        const int64_t p = first + i;
        partial |= p >= s.k;
        a_numbers.push_back(p < s.k ? a_rows[r] + p * s.a_col : -1);
        b_numbers.push_back(p < s.k ? b_columns[r] + p * s.b_row : -1);
      }
    }
    const Lanes x = lanes_.pick(a, a_numbers), y = lanes_.pick(b, b_numbers);
    Lanes next = multiply_add(code.type, x, y, sum);
    if (partial) {
      // Lanes behind the end get 0 added.
      const Lanes none = number(code.type, 0, sum.count);
      Lanes both = apply(ElementwiseOp::kAdd, code.type, {&sum, &none});
      both.count = 0;
      const auto other = static_cast<int64_t>(sum.vectors.size()) * lanes_.chunks().full;
      both.vectors.insert(both.vectors.end(), next.vectors.begin(), next.vectors.end());
      Numbers numbers;
      for (size_t i = 0; i < a_numbers.size(); ++i) {
        numbers.push_back(static_cast<int64_t>(i) + (a_numbers[i] >= 0 ? other : 0));
      }
      next = lanes_.pick(both, numbers);
    }
    sum = next;
  }
  const Lanes low = apply(ElementwiseOp::kAdd, code.type, {&sums[0], &sums[1]});
  const Lanes high = apply(ElementwiseOp::kAdd, code.type, {&sums[2], &sums[3]});
  const Rows rows{{static_cast<size_t>(width)}, *this, ElementwiseOp::kAdd, code.type, a, a_rows};
  return kernels::sum_order::fold_lanes<Lanes>(rows, rows.combine(low, high));
}

}  // namespace treadle::jit
