// Walks along an axis in order: positions of extremes, running sums and products (reduce.h).

#include <algorithm>
#include <type_traits>

#include "base/in_pieces.h"
#include "base/thread_pool.h"
#include "kernels/convert.h"
#include "kernels/costs.h"
#include "kernels/dispatch.h"
#include "kernels/isa/tables.h"
#include "kernels/reduce.h"
#include "kernels/types.h"

namespace treadle::kernels {

namespace {

constexpr size_t kColumns = 128;

// An axis of [outer, n, inner], with the conversions of its elements to and from T.
struct Axis {
  size_t outer, n, inner;
  TileConverter load;
  TileConverter store;

  // Calls f(first element, columns, first result) for every outer index and chunk of columns. Offsets count elements.
  template <class F>
  void for_each_chunk(F f) const {
    const size_t chunks = (inner + kColumns - 1) / kColumns;
    const double step_ns = costs::kScanStepNs + costs::kScanElementNs * static_cast<double>(std::min(inner, kColumns));
    parallel_for(static_cast<int64_t>(outer * chunks), step_ns * static_cast<double>(n),
                 [&](int64_t begin, int64_t end, int) {
                   for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
                     const size_t o = k / chunks, c = k % chunks * kColumns;
                     f(o * n * inner + c, std::min(inner - c, kColumns), o * inner + c);
                   }
                 });
  }
  // Calls f(begin, end) for pieces of the positions [from, n) along the axis of a chunk, in order.
  template <class F>
  void for_each_piece(size_t from, size_t columns, F f) const {
    const double step_ns = costs::kScanStepNs + costs::kScanElementNs * static_cast<double>(columns);
    in_pieces(static_cast<int64_t>(n - from), step_ns, [&](int64_t begin, int64_t end) {
      f(from + static_cast<size_t>(begin), from + static_cast<size_t>(end));
    });
  }
  // Calls f(i) for each position in [from, n), in order.
  template <class F>
  void for_each_step(size_t from, size_t columns, F f) const {
    for_each_piece(from, columns, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) f(i);
    });
  }
};

Axis make_axis(ElementType type, size_t outer, size_t n, size_t inner) {
  const ElementType computed = element_type_of(compute_type(type));
  return {outer, n, inner, make_converter(type, computed), make_converter(computed, type)};
}

// Elements [at, at + count) as T: in place, or converted into `buffer`.
template <class T>
const T* elements(const Axis& axis, const void* x, size_t at, size_t count, T* buffer) {
  const std::byte* from = static_cast<const std::byte*>(x) + at * axis.load.from_width;
  if (axis.load.step_count == 0) return reinterpret_cast<const T*>(from);
  convert(axis.load, from, buffer, count);
  return buffer;
}

template <bool kMax, class T>
bool beats(T value, T best, bool select_last) {
  if (value != value) return best == best || select_last;
  if (best != best) return false;
  if (value == best) return select_last;
  return kMax ? value > best : value < best;
}

// Columns: walks down the rows of a chunk of columns.
template <class T, class Columns>
void find_column_extremes(Columns search, const Axis& axis, const void* input, int64_t* out, bool select_last) {
  axis.for_each_chunk([&](size_t first, size_t columns, size_t result) {
    T buffer[kColumns];
    T best[kColumns];
    const auto row = [&](size_t i) { return elements<T>(axis, input, first + i * axis.inner, columns, buffer); };
    std::copy_n(row(0), columns, best);
    std::fill_n(out + result, columns, 0);
    axis.for_each_piece(1, columns, [&](size_t begin, size_t end) {
      const size_t rows = axis.load.step_count == 0 ? end - begin : 1;  // converted rows come singly
      for (size_t i = begin; i < end; i += rows) {
        search(row(i), axis.inner, rows, columns, static_cast<int64_t>(i), best, out + result, select_last);
      }
    });
  });
}

template <bool kProduct, class T>
T step(T a, T b) {
  if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(kProduct ? static_cast<U>(a) * static_cast<U>(b) : static_cast<U>(a) + static_cast<U>(b));
  } else {
    return static_cast<T>(kProduct ? a * b : a + b);
  }
}

// Accumulates one column; its sum stays in a register.
template <bool kProduct, class T>
void accumulate_column(const Axis& axis, const T* x, T* result, const CumSumOptions& options) {
  const int64_t count = static_cast<int64_t>(axis.n), apart = static_cast<int64_t>(axis.inner);
  const int64_t step_by = options.reverse ? -apart : apart;
  const int64_t at = options.reverse ? (count - 1) * apart : 0;
  T sum = x[at];  // so that -0 stays
  result[at] = options.exclusive ? T(kProduct ? 1 : 0) : sum;
  in_pieces(count - 1, costs::kScanStepNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin + 1; i <= end; ++i) {
      const T next = step<kProduct>(sum, x[at + i * step_by]);
      result[at + i * step_by] = options.exclusive ? sum : next;
      sum = next;
    }
  });
}

template <bool kProduct, class T>
void accumulate(const Axis& axis, const void* input, void* output, const CumSumOptions& options) {
  constexpr size_t kFewColumns = 4;
  if (axis.inner <= kFewColumns && axis.n > 0 && axis.load.step_count == 0) {
    parallel_for(static_cast<int64_t>(axis.outer), costs::kScanStepNs * static_cast<double>(axis.n * axis.inner),
                 [&](int64_t begin, int64_t end, int) {
                   for (auto o = static_cast<size_t>(begin); o < static_cast<size_t>(end); ++o) {
                     for (size_t at = o * axis.n * axis.inner, c = 0; c < axis.inner; ++c) {
                       accumulate_column<kProduct>(axis, static_cast<const T*>(input) + at + c,
                                                   static_cast<T*>(output) + at + c, options);
                     }
                   }
                 });
    return;
  }
  T neutral[kColumns];
  std::fill_n(neutral, kColumns, T(kProduct ? 1 : 0));
  axis.for_each_chunk([&](size_t first, size_t columns, size_t) {
    T buffer[kColumns];
    T sum[kColumns];
    T made[kColumns];
    const bool direct = axis.store.step_count == 0;
    axis.for_each_step(0, columns, [&](size_t i) {
      const size_t at = first + (options.reverse ? axis.n - 1 - i : i) * axis.inner;
      const T* x = elements<T>(axis, input, at, columns, buffer);
      std::byte* const place = static_cast<std::byte*>(output) + at * axis.load.from_width;
      T* const result = direct ? reinterpret_cast<T*>(place) : made;
      if (options.exclusive) std::copy_n(i == 0 ? neutral : sum, columns, result);
      if (i == 0) {
        std::copy_n(x, columns, sum);  // so that -0 stays
      } else {
        for (size_t c = 0; c < columns; ++c) sum[c] = step<kProduct>(sum[c], x[c]);
      }
      if (!options.exclusive) std::copy_n(sum, columns, result);
      if (!direct) convert(axis.store, made, place, columns);
    });
  });
}

// The extreme of a row, block by block. `read(at, count)` returns elements of the row, `rows` finds the extreme of a
// block.
template <bool kMax, class T, class Rows, class Read>
int64_t extreme_of_blocks(Rows rows, size_t n, size_t block, bool select_last, StopPoll& stop, Read&& read) {
  int64_t place = 0;
  T best{};
  for (size_t at = 0; at < n; at += block) {
    const size_t count = std::min(block, n - at);
    if (stop.after(costs::kExtremeElementNs * static_cast<double>(count))) break;
    const T* const x = read(at, count);
    int64_t found = 0;
    rows(x, 1, count, &found, select_last);
    if (at > 0 && !beats<kMax>(x[found], best, select_last)) continue;
    best = x[found];
    place = found + static_cast<int64_t>(at);
  }
  return place;
}

// Extremes of rows whose elements are stored in the compute type.
template <bool kMax, class T, class Rows>
void find_row_extremes(Rows rows, const T* x, int64_t* out, size_t count, size_t n, bool select_last) {
  constexpr size_t kBlock = size_t{1} << 20;
  parallel_for(static_cast<int64_t>(count), costs::kExtremeElementNs * static_cast<double>(n),
               [&](int64_t begin, int64_t end, int) {
                 if (n <= kBlock)
                   return rows(x + begin * static_cast<int64_t>(n), static_cast<size_t>(end - begin), n, out + begin,
                               select_last);
                 StopPoll stop;
                 for (int64_t r = begin; r < end; ++r) {
                   const T* row = x + static_cast<size_t>(r) * n;
                   out[r] = extreme_of_blocks<kMax, T>(rows, n, kBlock, select_last, stop,
                                                       [row](size_t at, size_t) { return row + at; });
                 }
               });
}

// Extremes of rows whose elements are converted first.
template <bool kMax, class T, class Rows>
void find_row_extremes(Rows rows, const Axis& axis, const void* input, int64_t* out, bool select_last) {
  constexpr size_t kBlock = 1024;
  parallel_for(static_cast<int64_t>(axis.outer), costs::kExtremeConvertedNs * static_cast<double>(axis.n),
               [&](int64_t begin, int64_t end, int) {
                 T block[kBlock];
                 StopPoll stop;
                 for (int64_t r = begin; r < end; ++r) {
                   const size_t row = static_cast<size_t>(r) * axis.n;
                   out[r] = extreme_of_blocks<kMax, T>(
                       rows, axis.n, kBlock, select_last, stop,
                       [&](size_t at, size_t n) { return elements<T>(axis, input, row + at, n, block); });
                 }
               });
}

template <bool kMax>
void find_extremes(ElementType type, const void* input, int64_t* out, size_t outer, size_t n, size_t inner,
                   bool select_last) {
  const ComputeType compute = compute_type(type);
  const auto rows = kernels().reduce.extreme_rows[kMax][static_cast<int>(compute)];
  const auto columns = kernels().reduce.extreme_columns[kMax][static_cast<int>(compute)];
  with_compute_type(compute, [&](auto zero) {
    using T = decltype(zero);
    if (inner != 1) {
      find_column_extremes<T>(columns, make_axis(type, outer, n, inner), input, out, select_last);
    } else if (element_type_of(compute) == type) {
      find_row_extremes<kMax>(rows, static_cast<const T*>(input), out, outer, n, select_last);
    } else {
      find_row_extremes<kMax, T>(rows, make_axis(type, outer, n, inner), input, out, select_last);
    }
  });
}

}  // namespace

void arg_max(ElementType type, const void* input, int64_t* out, size_t outer, size_t n, size_t inner,
             bool select_last) {
  find_extremes<true>(type, input, out, outer, n, inner, select_last);
}

void arg_min(ElementType type, const void* input, int64_t* out, size_t outer, size_t n, size_t inner,
             bool select_last) {
  find_extremes<false>(type, input, out, outer, n, inner, select_last);
}

void cum_sum(ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner,
             const CumSumOptions& options) {
  with_compute_type(compute_type(type), [&](auto zero) {
    accumulate<false, decltype(zero)>(make_axis(type, outer, n, inner), input, out, options);
  });
}

void cum_prod(ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner,
              const CumSumOptions& options) {
  with_compute_type(compute_type(type), [&](auto zero) {
    accumulate<true, decltype(zero)>(make_axis(type, outer, n, inner), input, out, options);
  });
}

}  // namespace treadle::kernels
