#include "jit/row_product.h"

#include "jit/lane_maths.h"
#include "jit/loop_writer.h"

namespace treadle::jit {

namespace {

int64_t width_of(ElementType type) {
  return static_cast<int64_t>(byte_width(compute_type(type)));
}

// The number of vectors of sums that are added to at a time: enough for each addition to end before the next one to the
// same sum, and few enough to leave registers for the operands.
int64_t vectors_at_once(const Chunks& chunks, ElementType type) {
  const int64_t registers = chunks.full == 16 ? 16 : 8;
  return registers * 4 / width_of(type);
}

// The number of elements of all matrices by which the loop multiplies.
int64_t weights_of(const plan::NativeRequest& request) {
  int64_t sum = 0;
  const plan::Loop& loop = request.program->loops[request.loop];
  for (uint32_t pc = loop.first + 1; pc < loop.last; ++pc) {
    const auto* code = std::get_if<plan::ProductCode>(request.other(pc));
    if (code) sum += code->shape.n * code->shape.k;
  }
  return sum;
}

}  // namespace

bool multiplies_rows(const plan::ProductCode& code, const plan::NativeRequest& request, const Chunks& chunks,
                     int threads) {
  // A kernel reads larger matrices at the speed of memory, and may share them among threads. The same holds if the
  // loop's other matrices evict this one from the cache between two iterations. Measured with square matrices: native
  // code takes 0.85 of the kernel's time at 128 x 128, 0.95 at 256 x 256, and as long at 362 x 362. Threads cannot
  // share the half of a microsecond that 128 x 128 take.
  constexpr int64_t kMostElements = 1 << 16, kFewElements = 1 << 14, kLeastSteps = 8;
  const kernels::GemmShape& s = code.shape;
  const bool clamps = s.low != -__builtin_inff() || s.high != __builtin_inff();
  const bool is_packed = code.panels.columns > 0;
  const bool rows = is_packed ? code.panels.columns % chunks.full == 0 : s.b_col == 1;
  return code.type != ElementType::kBool && !clamps && rows && code.stack.empty() && s.m == 1 && s.a_col == 1 &&
         s.n > kernels::kGemmDotColumns && s.k >= kLeastSteps &&
         s.n * s.k <= (threads == 1 && weights_of(request) <= kMostElements ? kMostElements : kFewElements) &&
         (code.bias_count == 0 || s.bias_col == 0 || s.bias_col == 1);
}

// Columns [column, column + count) of the product of a row and a matrix. Each column is one chain over k.
Lanes LoopWriter::sum_rows(const plan::ProductCode& code, Value* row, Value* matrix, int64_t column, int64_t count) {
  constexpr int64_t kAtOnce = 8;  // rows of the matrix between two branches; 4 and 16 are as fast (measured)
  const LaneMaths maths(lanes_, *this, request_.isa);
  const kernels::GemmShape& s = code.shape;
  const bool is_packed = code.panels.columns > 0;
  const int64_t row_step = is_packed ? code.panels.place(1, 0) - code.panels.place(0, 0) : s.b_row;
  llvm::Type* scalar = element_ir_type(b_.getContext(), code.type);
  std::vector<llvm::AllocaInst*> sums;
  for (Value* zero : maths.number(code.type, 0, count).vectors) {
    sums.push_back(variable(zero->getType(), "sum"));
    set(sums.back(), zero);
  }
  auto add_row = [&](Value* p) {
    const Lanes x = lanes_.splat(load_at(b_.CreateGEP(scalar, row, p), code.type, 1), count);
    Value* line = b_.CreateGEP(scalar, matrix, b_.CreateMul(p, b_.getInt64(static_cast<uint64_t>(row_step))));
    for (size_t c = 0; c < sums.size(); ++c) {
      const int64_t j = column + static_cast<int64_t>(c) * chunks_.full;
      const int64_t at = is_packed ? code.panels.place(0, j) : j;
      const unsigned lanes = chunks_.lanes(count, c);
      const Lanes y{scalar, lanes, {load_at(offset(line, at * width_of(code.type)), code.type, lanes)}};
      const Lanes factor{scalar, lanes, {x.vectors[c]}}, sum{scalar, lanes, {get(sums[c])}};
      set(sums[c], maths.multiply_add(code.type, factor, y, sum).vectors[0]);
    }
  };
  auto number = [&](int64_t value) { return b_.getInt64(static_cast<uint64_t>(value)); };
  const int64_t repeats = s.k / kAtOnce;
  count_to(repeats, [&](Value* repeat) {
    Value* first = b_.CreateMul(repeat, number(kAtOnce));
    for (int64_t p = 0; p < kAtOnce; ++p) add_row(b_.CreateAdd(first, number(p)));
  });
  for (int64_t p = repeats * kAtOnce; p < s.k; ++p) add_row(number(p));
  Lanes result{scalar, count, {}};
  for (llvm::AllocaInst* sum : sums) result.vectors.push_back(get(sum));
  return result;
}

void LoopWriter::write_row_product(const plan::ProductCode& code) {
  const LaneMaths maths(lanes_, *this, request_.isa);
  const kernels::GemmShape& s = code.shape;
  // The row must be in memory, because it is read element by element.
  Value* row = nullptr;
  if (layout_.locations[code.a].kind == LocationKind::kRegister) {
    row = stack(static_cast<size_t>(code.a_count * width_of(code.type)));
    store_flat(row, code.type, read_flat(code.a, code.type, code.a_count));
  } else {
    row = pointer(code.a);
  }
  Value* matrix = code.panels.columns > 0 ? reference({plan::NativeRef::Kind::kPacked, pc_, {}}) : pointer(code.b);
  const int64_t most = vectors_at_once(chunks_, code.type) * chunks_.full;
  const int64_t groups = (s.n + most - 1) / most, all = static_cast<int64_t>(chunks_.size(s.n));
  const int64_t columns = (all + groups - 1) / groups * chunks_.full;
  Lanes result{element_ir_type(b_.getContext(), code.type), s.n, {}};
  for (int64_t j = 0; j < s.n; j += columns) {
    const Lanes sums = sum_rows(code, row, matrix, j, std::min(columns, s.n - j));
    result.vectors.insert(result.vectors.end(), sums.vectors.begin(), sums.vectors.end());
  }
  if (code.bias == plan::kNoSlot) return write_flat(code.c, code.type, maths.with_bias(code, result, nullptr));
  const Numbers numbers = range(s.n, 0, s.bias_col);
  const Lanes bias = read_numbers(code.bias, code.type, code.bias_count, numbers);
  write_flat(code.c, code.type, maths.with_bias(code, result, &bias));
}

}  // namespace treadle::jit
