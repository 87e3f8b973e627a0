#include "kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/in_pieces.h"
#include "kernels/convert.h"
#include "kernels/costs.h"
#include "kernels/dispatch.h"
#include "kernels/isa/tables.h"
#include "kernels/types.h"

namespace treadle::kernels {

namespace {

// The number of columns that are reduced side by side. Their rows are converted together.
constexpr size_t kColumns = 128;

Term term_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::kMax:
      return Term::kMax;
    case ReduceOp::kMin:
      return Term::kMin;
    case ReduceOp::kProd:
      return Term::kProd;
    case ReduceOp::kL1:
      return Term::kAbs;
    case ReduceOp::kL2:
    case ReduceOp::kSumSquare:
      return Term::kSquare;
    case ReduceOp::kLogSumExp:
      return Term::kExp;
    default:
      return Term::kSum;
  }
}

// One wide accumulator for each output in work; shifts are of the compute type.
struct Accumulators {
  alignas(64) std::byte wide[kColumns * 8];
  alignas(64) std::byte shift[kColumns * 8];
};

// The neutral element. It must fit the stored type, which has `stored_bytes`, because it may become a result.
template <class T>
Wide<T> neutral(Term term, size_t stored_bytes) {
  using L = std::numeric_limits<T>;
  if (term == Term::kProd) return 1;
  if (term != Term::kMax && term != Term::kMin) return 0;
  const bool largest = term == Term::kMin;
  if constexpr (L::has_infinity) {
    return static_cast<Wide<T>>(largest ? L::infinity() : -L::infinity());
  } else if constexpr (sizeof(T) == 1) {  // bool
    return static_cast<Wide<T>>(largest);
  } else {
    return static_cast<Wide<T>>((largest ? L::max() : L::lowest()) >> (8 * (sizeof(T) - stored_bytes)));
  }
}

void start(const ReducePlan& plan, Term term, Accumulators* accumulators, size_t columns) {
  with_compute_type(plan.compute, [&](auto zero) {
    using T = decltype(zero);
    std::fill_n(reinterpret_cast<Wide<T>*>(accumulators->wide), columns, neutral<T>(term, plan.width));
  });
}

// Converts as Cast does.
template <class T>
T from_double([[maybe_unused]] ComputeType type, double value) {
  T result = 0;
  if constexpr (std::is_floating_point_v<T>) {
    result = static_cast<T>(value);
  } else {
    cast(ElementType::kDouble, element_type_of(type), &value, &result, 1);
  }
  return result;
}

template <class T>
T finished(ComputeType type, ReduceOp op, Wide<T> sum, size_t count, T shift) {
  const double real = static_cast<double>(sum);
  switch (op) {
    case ReduceOp::kMean:
      if constexpr (std::is_floating_point_v<T>) return static_cast<T>(real / static_cast<double>(count));
      return count == 0 ? T(0) : static_cast<T>(sum / static_cast<Wide<T>>(count));
    case ReduceOp::kL2:
      return from_double<T>(type, std::sqrt(real));
    case ReduceOp::kLogSum:
      return from_double<T>(type, std::log(real));
    case ReduceOp::kLogSumExp:
      return from_double<T>(type, std::log(real) + static_cast<double>(shift));
    default:
      return static_cast<T>(sum);
  }
}

// Whether the accumulator is the result.
constexpr bool keeps_sums(ReduceOp op) {
  return op != ReduceOp::kMean && op != ReduceOp::kL2 && op != ReduceOp::kLogSum && op != ReduceOp::kLogSumExp;
}

// Calls f with the operation; frequent operations are compile-time constants, so that the compiler vectorises their
// loops.
template <class F>
void with_op(ReduceOp op, F f) {
  if (op == ReduceOp::kMean) return f(std::integral_constant<ReduceOp, ReduceOp::kMean>());
  if (keeps_sums(op)) return f(std::integral_constant<ReduceOp, ReduceOp::kSum>());
  f(op);
}

void finish(const ReducePlan& plan, const Accumulators& accumulators, std::byte* out, size_t columns) {
  alignas(64) std::byte results[kColumns * 8];
  with_compute_type(plan.compute, [&](auto zero) {
    using T = decltype(zero);
    const Wide<T>* sums = reinterpret_cast<const Wide<T>*>(accumulators.wide);
    const T* shifts = reinterpret_cast<const T*>(accumulators.shift);
    T* values = reinterpret_cast<T*>(results);
    const bool shifted = plan.op == ReduceOp::kLogSumExp;
    with_op(plan.op, [&](auto op) {
      for (size_t c = 0; c < columns; ++c) {
        values[c] = finished<T>(plan.compute, op, sums[c], plan.count, shifted ? shifts[c] : T(0));
      }
    });
  });
  convert(plan.store, results, out, columns);
}

// Makes the largest elements the shifts of LogSumExp; the shift is 0 if the largest element is infinite.
void take_shifts(const ReducePlan& plan, Accumulators* accumulators, size_t columns) {
  const double* largest = reinterpret_cast<const double*>(accumulators->wide);
  const auto shift = [&](auto* to) {
    using T = std::remove_reference_t<decltype(*to)>;
    for (size_t c = 0; c < columns; ++c) to[c] = std::isinf(largest[c]) ? T(0) : static_cast<T>(largest[c]);
  };
  if (plan.compute == ComputeType::kF32) {
    shift(reinterpret_cast<float*>(accumulators->shift));
  } else {
    shift(reinterpret_cast<double*>(accumulators->shift));
  }
}

// Steps through `rank` dimensions, the last one fastest. Returns false after the last element.
struct Walk {
  int rank;
  const int64_t* dims;
  const int64_t* strides;
  int64_t index[kMaxReduceDims] = {};

  // Goes to element `number`. Returns its offset from the first element.
  int64_t seek(size_t number) {
    int64_t offset = 0;
    auto rest = static_cast<int64_t>(number);
    for (int d = rank - 1; d >= 0; --d) {
      index[d] = rest % dims[d];
      rest /= dims[d];
      offset += index[d] * strides[d];
    }
    return offset;
  }

  bool next(const std::byte** at) {
    for (int d = rank - 1; d >= 0; --d) {
      if (++index[d] < dims[d]) {
        *at += strides[d];
        return true;
      }
      *at -= strides[d] * (dims[d] - 1);
      index[d] = 0;
    }
    return false;
  }
};

// Whether extremes of a row may be searched among the stored bytes, so that only one element is converted.
bool compares_bytes(const ReducePlan& plan, Term term) {
  return plan.width == 1 && plan.compute == ComputeType::kU32 && (term == Term::kMax || term == Term::kMin);
}

// Adds a row in pieces of whole blocks. False if told to stop.
bool accumulate_row(const ReducePlan& plan, Term term, const std::byte* x, size_t n, Accumulators* accumulators,
                    StopPoll& stop) {
  const auto row = plan.table->row[static_cast<int>(term)][static_cast<int>(plan.compute)];
  alignas(64) std::byte tile[kReduceBlock * 8];
  const auto blocks = static_cast<int64_t>((n + kReduceBlock - 1) / kReduceBlock);
  return in_pieces(blocks, costs::kReducedElementNs * kReduceBlock, stop, [&](int64_t begin, int64_t end) {
    const size_t first = static_cast<size_t>(begin) * kReduceBlock;
    const size_t last = std::min(n, static_cast<size_t>(end) * kReduceBlock);
    if (plan.load.step_count == 0) {
      return row(x + first * plan.width, last - first, accumulators->wide, accumulators->shift);
    }
    if (compares_bytes(plan, term)) {
      std::byte extreme = x[first];
      plan.table->row[static_cast<int>(term)][static_cast<int>(ComputeType::kBool)](x + first, last - first, &extreme,
                                                                                    nullptr);
      convert(plan.load, &extreme, tile, 1);
      return row(tile, 1, accumulators->wide, accumulators->shift);
    }
    for (size_t at = first; at < last; at += kReduceBlock) {
      const size_t count = std::min(last - at, kReduceBlock);
      convert(plan.load, x + at * plan.width, tile, count);
      row(tile, count, accumulators->wide, accumulators->shift);
    }
  });
}

bool accumulate_columns(const ReducePlan& plan, Term term, const std::byte* x, int64_t stride, size_t rows,
                        size_t columns, Accumulators* accumulators, StopPoll& stop) {
  const auto reduce = plan.table->columns[static_cast<int>(term)][static_cast<int>(plan.compute)];
  const double row_ns = 2 + costs::kReducedElementNs * static_cast<double>(columns);
  if (plan.load.step_count == 0) {
    const auto blocks = static_cast<int64_t>((rows + kReduceBlock - 1) / kReduceBlock);
    return in_pieces(blocks, row_ns * kReduceBlock, stop, [&](int64_t begin, int64_t end) {
      const size_t first = static_cast<size_t>(begin) * kReduceBlock;
      const size_t last = std::min(rows, static_cast<size_t>(end) * kReduceBlock);
      reduce(x + static_cast<int64_t>(first) * stride, stride, last - first, columns, accumulators->wide,
             accumulators->shift);
    });
  }
  alignas(64) std::byte tile[kConvertedRows * kColumns * 8];
  const size_t width = plan.load.to_width;
  for (size_t at = 0; at < rows; at += kConvertedRows) {
    const size_t count = std::min(rows - at, kConvertedRows);
    for (size_t r = 0; r < count; ++r, x += stride) convert(plan.load, x, tile + r * columns * width, columns);
    reduce(tile, static_cast<int64_t>(columns * width), count, columns, accumulators->wide, accumulators->shift);
    if (stop.after(row_ns * static_cast<double>(count))) return false;
  }
  return true;
}

void accumulate(const ReducePlan& plan, Term term, const std::byte* x, size_t columns, Accumulators* accumulators) {
  StopPoll stop;
  start(plan, term, accumulators, columns);
  if (plan.count == 0) return;
  if (!plan.columns) {
    Walk walk{plan.reduced_rank, plan.reduced_dims, plan.reduced_strides};
    while (accumulate_row(plan, term, x, plan.inner, accumulators, stop) && walk.next(&x)) {
    }
    return;
  }
  const int last = plan.reduced_rank - 1;  // the rows
  const int64_t rows = last < 0 ? 1 : plan.reduced_dims[last];
  const int64_t stride = last < 0 ? 0 : plan.reduced_strides[last];
  Walk walk{std::max(last, 0), plan.reduced_dims, plan.reduced_strides};
  while (accumulate_columns(plan, term, x, stride, static_cast<size_t>(rows), columns, accumulators, stop) &&
         walk.next(&x)) {
  }
}

void reduce_outputs(const ReducePlan& plan, const std::byte* x, std::byte* out, size_t columns) {
  Accumulators accumulators;
  const Term term = term_of(plan.op);
  if (term == Term::kExp) {
    accumulate(plan, Term::kMax, x, columns, &accumulators);
    take_shifts(plan, &accumulators, columns);
  }
  accumulate(plan, term, x, columns, &accumulators);
  finish(plan, accumulators, out, columns);
}

// A line has the elements at one index of the kept dimensions around it. A long line of columns is cut into blocks.
size_t blocks_per_line(const ReducePlan& plan) {
  return plan.columns ? (plan.inner + kColumns - 1) / kColumns : 1;
}

void run_reduce(const ReducePlan& plan, const void* input, void* output) {
  plan.run_parts(input, output, 0, plan.parts());
}

// Rows of one block each. Several rows are processed together, so that their logarithms overlap.
template <class T>
void log_sums_of_rows(const ReducePlan& plan, const T* x, size_t rows, T* results) {
  constexpr size_t kRows = 16;
  const auto type = static_cast<int>(plan.compute);
  const auto extremes = plan.table->rows[static_cast<int>(Term::kMax)][type];
  const auto add_exponentials = plan.table->row[static_cast<int>(Term::kExp)][type];
  for (size_t count, first = 0; first < rows; first += count, x += count * plan.inner) {
    count = std::min(kRows, rows - first);
    T shifts[kRows];
    double sums[kRows] = {};
    extremes(x, count, plan.inner, shifts);
    for (size_t r = 0; r < count; ++r) {
      if (std::isinf(shifts[r])) shifts[r] = 0;
      add_exponentials(x + r * plan.inner, plan.inner, sums + r, shifts + r);
    }
    for (size_t r = 0; r < count; ++r) {
      results[first + r] = finished<T>(plan.compute, plan.op, sums[r], plan.count, shifts[r]);
    }
  }
}

// Rows of one block each: a row's result is its sum, after the operation's last step.
template <class T>
void reduce_some_rows(const ReducePlan& plan, const T* x, size_t rows, T* results) {
  if (plan.op == ReduceOp::kLogSumExp) return log_sums_of_rows(plan, x, rows, results);
  const Term term = term_of(plan.op);
  plan.table->rows[static_cast<int>(term)][static_cast<int>(plan.compute)](x, rows, plan.inner, results);
  if (term == Term::kMax || term == Term::kMin || term == Term::kProd) return;
  if (keeps_sums(plan.op)) {
    for (size_t i = 0; i < rows; ++i) results[i] += T(0);  // a sum begins with 0, so it is never -0
    return;
  }
  with_op(plan.op, [&](auto op) {
    for (size_t i = 0; i < rows; ++i) {
      results[i] = finished<T>(plan.compute, op, static_cast<double>(results[i]), plan.count, T(0));
    }
  });
}

void run_some_rows(const ReducePlan& plan, const void* input, void* output, size_t rows) {
  if (plan.compute == ComputeType::kF32) {
    reduce_some_rows(plan, static_cast<const float*>(input), rows, static_cast<float*>(output));
  } else {
    reduce_some_rows(plan, static_cast<const double*>(input), rows, static_cast<double*>(output));
  }
}

void run_rows(const ReducePlan& plan, const void* input, void* output) {
  plan.run_parts(input, output, 0, plan.outputs);
}

bool is_rows(const ReducePlan& plan) {
  const bool floats = plan.compute == ComputeType::kF32 || plan.compute == ComputeType::kF64;
  return floats && plan.load.step_count == 0 && !plan.columns && plan.reduced_rank == 0 && plan.inner >= 1 &&
         plan.inner <= kReduceBlock;
}

bool needs_floats(ReduceOp op) {
  return op == ReduceOp::kLogSumExp;
}

// Merged neighbouring dimensions of the same kind; sizes of 1 are left out.
struct Group {
  int64_t size;
  bool reduced;
};

}  // namespace

size_t ReducePlan::parts() const {
  return outputs == 0 ? 0 : outputs / (columns ? inner : 1) * blocks_per_line(*this);
}

void ReducePlan::run_parts(const void* input, void* output, size_t begin, size_t end) const {
  if (begin >= end) return;  // a result without elements has lines without blocks
  if (run == run_rows) {
    in_pieces(static_cast<int64_t>(end - begin), costs::kReducedElementNs * static_cast<double>(inner),
              [&](int64_t first, int64_t last) {
                const size_t row = begin + static_cast<size_t>(first);
                run_some_rows(*this, static_cast<const std::byte*>(input) + row * inner * width,
                              static_cast<std::byte*>(output) + row * width, static_cast<size_t>(last - first));
              });
    return;
  }
  const size_t blocks = blocks_per_line(*this), line = columns ? inner : 1;
  Walk walk{kept_rank, kept_dims, kept_strides};
  const std::byte* x = static_cast<const std::byte*>(input) + walk.seek(begin / blocks);
  size_t block = begin % blocks;
  std::byte* out = static_cast<std::byte*>(output) + (begin / blocks * line + block * kColumns) * width;
  StopPoll stop;
  for (; begin < end && !stop.after(costs::kReducedElementNs * static_cast<double>(count)); ++begin) {
    const size_t first = block * kColumns, count_here = std::min(line - first, kColumns);
    reduce_outputs(*this, x + first * width, out, count_here);
    out += count_here * width;
    if (++block < blocks) continue;
    block = 0;
    walk.next(&x);
  }
}

bool has_reduce(ReduceOp op, ElementType type) {
  const ComputeType compute = compute_type(type);
  if (compute == ComputeType::kBool) return op == ReduceOp::kMax || op == ReduceOp::kMin;
  return compute != ComputeType::kNone;
}

Status begin_reduce(ReducePlan* plan, ReduceOp op, ElementType type) {
  if (!has_reduce(op, type)) return error(Code::kNotImplemented, "no such reduction of {}", name(type));
  *plan = ReducePlan();
  plan->run = run_reduce;
  plan->table = &kernels().reduce;
  plan->op = op;
  plan->width = static_cast<uint8_t>(byte_width(type));
  plan->compute = compute_type(type);
  const bool integer = plan->compute != ComputeType::kF32 && plan->compute != ComputeType::kF64;
  if (needs_floats(op) && integer) plan->compute = ComputeType::kF64;
  const ElementType computed = element_type_of(plan->compute);
  plan->load = make_converter(type, computed);
  plan->store = make_converter(computed, type);
  return {};
}

Status size_reduce(ReducePlan* plan, std::span<const int64_t> dims, std::span<const bool> reduced) {
  Group groups[2 * kMaxReduceDims];
  int rank = 0;
  for (size_t d = 0; d < dims.size(); ++d) {
    (reduced[d] ? plan->count : plan->outputs) *= static_cast<size_t>(dims[d]);
    if (dims[d] == 1) continue;
    if (rank > 0 && groups[rank - 1].reduced == reduced[d]) {
      groups[rank - 1].size *= dims[d];
    } else if (rank == 2 * kMaxReduceDims) {
      return error(Code::kLimit, "a reduction over more than {} separate axes", kMaxReduceDims);
    } else {
      groups[rank++] = {dims[d], reduced[d]};
    }
  }
  if (rank == 0) groups[rank++] = {1, true};
  plan->columns = !groups[rank - 1].reduced;
  plan->inner = static_cast<size_t>(groups[rank - 1].size);
  int64_t strides[2 * kMaxReduceDims];
  int64_t stride = plan->width;
  for (int g = rank - 1; g >= 0; --g) {
    strides[g] = stride;
    stride *= groups[g].size;
  }
  for (int g = 0; g + 1 < rank; ++g) {
    uint8_t& at = groups[g].reduced ? plan->reduced_rank : plan->kept_rank;
    (groups[g].reduced ? plan->reduced_dims : plan->kept_dims)[at] = groups[g].size;
    (groups[g].reduced ? plan->reduced_strides : plan->kept_strides)[at] = strides[g];
    ++at;
  }
  if (is_rows(*plan)) plan->run = run_rows;
  return {};
}

Status prepare_reduce(ReducePlan* plan, ReduceOp op, ElementType type, std::span<const int64_t> dims,
                      std::span<const bool> reduced) {
  TREADLE_TRY(begin_reduce(plan, op, type));
  return size_reduce(plan, dims, reduced);
}

}  // namespace treadle::kernels
