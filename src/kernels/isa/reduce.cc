#include "kernels/reduce.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "kernels/isa/combine_rows.h"
#include "kernels/isa/rows.h"
#include "kernels/types.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

constexpr bool takes_shift(Term term) {
  return term == Term::kExp || term == Term::kCenteredSquare;
}

// e^x with the bits of math::exp, for callers whose numbers are mostly at most 0: most of these have a normal result,
// for which one factor is enough.
template <class V>
TREADLE_ALWAYS_INLINE V exp_up_to_zero(V x) {
  if (any(!(x <= V(0)) | (x < V(math::Coefficients<typename V::Scalar>::kNearExpLow)))) [[unlikely]]
    return math::exp(x);
  const auto [scale, tail] = math::exp_in_range<true>(x);
  return multiply_add(scale, tail, scale);
}

// The term that an element contributes.
template <Term kTerm, class V>
TREADLE_ALWAYS_INLINE V term_of(V x, [[maybe_unused]] V shift) {
  if constexpr (kTerm == Term::kAbs) {
    return functions::Abs::eval(x);
  } else if constexpr (kTerm == Term::kSquare) {
    return x * x;
  } else if constexpr (kTerm == Term::kExp) {
    return exp_up_to_zero(x - shift);
  } else if constexpr (kTerm == Term::kCenteredSquare) {
    return (x - shift) * (x - shift);
  } else {
    return x;
  }
}

template <Term kTerm, class T>
TREADLE_ALWAYS_INLINE void combine_into(Wide<T>& accumulator, T value) {
  using V = Vec<Wide<T>, 1>;
  accumulator = combine<kTerm>(V::of(accumulator), V::of(static_cast<Wide<T>>(value))).v;
}

// combine_into for N accumulators.
template <Term kTerm, class T, int N>
TREADLE_ALWAYS_INLINE void combine_into(Wide<T>* accumulators, Vec<T, N> values) {
  if constexpr (N == 1) {
    combine_into<kTerm, T>(*accumulators, values.v);
  } else {
    constexpr int kLanes = std::min<int>(N, kFullLanes<Wide<T>>);
    using V = Vec<Wide<T>, kLanes>;
    T narrow[N];
    values.store(narrow);
    for (int i = 0; i < N; i += kLanes) {
      const V wide = V::of(__builtin_convertvector(Vec<T, kLanes>::load(narrow + i).v, typename V::Native));
      combine<kTerm>(V::load(accumulators + i), wide).store(accumulators + i);
    }
  }
}

// Whether neither the order of elements nor the width of accumulators matters.
template <class T>
constexpr bool is_extreme_of_integers(Term term) {
  return std::is_integral_v<T> && (term == Term::kMax || term == Term::kMin);
}

template <class T>
void exp_block(const T* x, T shift, T* y, size_t n) {
  row_loop<T, false>(
      n, [x](auto lanes, size_t i) { return Vec<T, lanes.value>::load(x + i); },
      [y, shift](size_t i, auto v) { exp_up_to_zero(v - decltype(v)(shift)).store(y + i); });
}

// Combines 1 <= n <= kReduceBlock floats, or integers if their extreme is wanted.
template <Term kTerm, class T>
T reduce_block(const T* x, size_t n, T shift) {
  if constexpr (kTerm == Term::kExp) {  // two passes over the block, so that independent exponentials overlap
    T exponentials[kReduceBlock];
    exp_block(x, shift, exponentials, n);
    return reduce_block<Term::kSum>(exponentials, n, T(0));
  }
  return combine_row<kTerm, T>(
      n, [&](size_t k) { return term_of<kTerm>(Vec<T, kFullLanes<T>>::load(x + k), Vec<T, kFullLanes<T>>(shift)); },
      [&](size_t k) { return term_of<kTerm>(Vec<T, 1>::of(x[k]), Vec<T, 1>::of(shift)); });
}

template <class T>
double product_in_lanes(const T* x, size_t n) {
  constexpr size_t kLanes = sum_order::kProductLanes;
  double lanes[kLanes];
  std::fill_n(lanes, kLanes, 1.0);
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t k = 0; k < kLanes; ++k) lanes[k] *= static_cast<double>(x[i + k]);
  }
  for (size_t k = 0; i < n; ++i, ++k) lanes[k] *= static_cast<double>(x[i]);
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t k = 0; k < width; ++k) lanes[k] *= lanes[k + width];
  }
  return lanes[0];
}

template <class T>
double product_in_order(double product, const T* x, size_t n) {
  for (size_t i = 0; i < n; ++i) product *= static_cast<double>(x[i]);
  return product;
}

template <Term kTerm, class T>
void reduce_row(const void* in, size_t n, void* out, const void* shift_at) {
  const T* x = static_cast<const T*>(in);
  Wide<T>& accumulator = *static_cast<Wide<T>*>(out);
  if constexpr ((std::is_floating_point_v<T> && kTerm != Term::kProd) || is_extreme_of_integers<T>(kTerm)) {
    const T shift = takes_shift(kTerm) ? *static_cast<const T*>(shift_at) : T(0);
    for (size_t start = 0; start < n; start += kReduceBlock) {
      combine_into<kTerm, T>(accumulator, reduce_block<kTerm>(x + start, std::min(n - start, kReduceBlock), shift));
    }
  } else if constexpr (std::is_floating_point_v<T>) {
    for (size_t start = 0; start < n; start += kReduceBlock) {
      const size_t count = std::min(n - start, kReduceBlock);
      accumulator = count >= sum_order::kLeastInLanes ? accumulator * product_in_lanes(x + start, count)
                                                      : product_in_order(accumulator, x + start, count);
    }
  } else {
    using W = Vec<Wide<T>, 1>;
    W total = W::of(accumulator);
    for (size_t i = 0; i < n; ++i) {
      total = combine<kTerm>(total, term_of<kTerm>(W::of(static_cast<Wide<T>>(x[i])), W()));
    }
    accumulator = total.v;
  }
}

template <Term kTerm, class T>
void reduce_rows(const void* in, size_t rows, size_t n, void* out) {
  constexpr size_t N = kFullLanes<T>;
  const T* x = static_cast<const T*>(in);
  T* results = static_cast<T*>(out);
  size_t r = 0;
  for (; n >= N && n <= kShortRow<T> && r + N <= rows; r += N, x += N * n) {
    const auto at = [&](size_t row, size_t k) { return term_of<kTerm>(Vec<T, N>::load(x + row * n + k), {}); };
    combine_short_rows<kTerm, T>(n, at).store(results + r);
  }
  // The last vector of a row may reach into the rows behind it, but not behind the last row.
  for (; n > 1 && n < N && (r + N - 1) * n + N <= rows * n; r += N, x += N * n) {
    const auto row = [&](size_t i) { return term_of<kTerm>(Vec<T, N>::load(x + i * n), {}); };
    combine_shortest_rows<kTerm, T>(n, row).store(results + r);
  }
  for (; r < rows; ++r, x += n) results[r] = reduce_block<kTerm>(x, n, T(0));
}

// Multiplies several short rows at a time, since each product within a row waits for the one before.
template <class T>
void multiply_rows(const void* in, size_t rows, size_t n, void* out) {
  constexpr size_t kRows = 8;
  const T* x = static_cast<const T*>(in);
  T* results = static_cast<T*>(out);
  size_t r = 0;
  for (; n < sum_order::kLeastInLanes && r + kRows <= rows; r += kRows, x += kRows * n) {
    double products[kRows];
    std::fill_n(products, kRows, 1.0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t k = 0; k < kRows; ++k) products[k] *= static_cast<double>(x[k * n + i]);
    }
    for (size_t k = 0; k < kRows; ++k) results[r + k] = static_cast<T>(products[k]);
  }
  for (; r < rows; ++r, x += n) {
    results[r] = static_cast<T>(n >= sum_order::kLeastInLanes ? product_in_lanes(x, n) : product_in_order(1, x, n));
  }
}

// Reduces kVectors of N columns side by side, so that rows that are far apart are read by whole cache lines.
template <Term kTerm, class T, int N, int kVectors>
TREADLE_ALWAYS_INLINE void reduce_column_block(const std::byte* from, int64_t stride, size_t rows, Wide<T>* accumulator,
                                               const T* shift_at) {
  using V = Vec<T, N>;
  V shift[kVectors];
  for (int k = 0; k < kVectors; ++k) shift[k] = takes_shift(kTerm) ? V::load(shift_at + k * N) : V(T(0));
  const auto at = [&](size_t r) {
    const T* row = reinterpret_cast<const T*>(from + static_cast<int64_t>(r) * stride);
    Vectors<T, N, kVectors> terms;
    for (int k = 0; k < kVectors; ++k) terms.v[k] = term_of<kTerm>(V::load(row + k * N), shift[k]);
    return terms;
  };
  Vectors<T, N, kVectors> sums;
  sum_order::combine_in_order(block_of<kTerm, T>(rows, at, at), sums);
  for (int k = 0; k < kVectors; ++k) combine_into<kTerm>(accumulator + k * N, sums.v[k]);
}

template <Term kTerm, class T>
void reduce_columns(const void* in, int64_t stride, size_t rows, size_t columns, void* out, const void* shift_at) {
  const std::byte* from = static_cast<const std::byte*>(in);
  Wide<T>* accumulator = static_cast<Wide<T>*>(out);
  if constexpr ((std::is_floating_point_v<T> && kTerm != Term::kProd) || is_extreme_of_integers<T>(kTerm)) {
    constexpr size_t N = kFullLanes<T>;
    const T* shift = static_cast<const T*>(shift_at);
    const auto shift_of = [&](size_t c) { return takes_shift(kTerm) ? shift + c : nullptr; };
    for (size_t start = 0; start < rows; start += kReduceBlock) {
      const size_t n = std::min(rows - start, kReduceBlock);
      const std::byte* block = from + static_cast<int64_t>(start) * stride;
      size_t c = 0;
      const auto next = [&]<int kLanes, int kVectors>() {
        for (; c + kLanes * kVectors <= columns; c += kLanes * kVectors) {
          reduce_column_block<kTerm, T, kLanes, kVectors>(block + c * sizeof(T), stride, n, accumulator + c,
                                                          shift_of(c));
        }
      };
      next.template operator()<N, 4>();
      next.template operator()<N, 1>();
      next.template operator()<1, 1>();
    }
  } else {
    using W = Vec<Wide<T>, 1>;
    for (size_t r = 0; r < rows; ++r, from += stride) {
      const T* x = reinterpret_cast<const T*>(from);
      for (size_t c = 0; c < columns; ++c) {
        const W value = term_of<kTerm>(W::of(static_cast<Wide<T>>(x[c])), W());
        accumulator[c] = combine<kTerm>(W::of(accumulator[c]), value).v;
      }
    }
  }
}

// The index of the extreme among n >= N floats: first finds its value, then its index. A NaN is the extreme.
template <Term kTerm, class T, int N>
TREADLE_ALWAYS_INLINE size_t extreme_of(const T* x, size_t n, bool select_last) {
  using V = Vec<T, N>;
  using Index = typename SizedInt<sizeof(T)>::Signed;
  using Indices = Vec<Index, N>;
  const size_t last = n - N;  // the last vector may overlap the one before it
  V extremes = V::load(x + last);
  for (size_t i = 0; i < last; i += N) extremes = combine<kTerm>(extremes, V::load(x + i));
  const T extreme = fold_lanes<kTerm>(extremes);
  const V wanted(extreme);
  const bool is_nan = extreme != extreme;
  const auto found = [&](size_t i) {
    const V v = V::load(x + i);
    return is_nan ? v != v : v == wanted;
  };
  Index lanes[N];
  for (int k = 0; k < N; ++k) lanes[k] = static_cast<Index>(k);
  const Indices indices = Indices::load(lanes);
  if (select_last) {
    size_t at = last;
    while (!any(found(at))) at -= std::min<size_t>(at, N);
    return at + static_cast<size_t>(fold_lanes<Term::kMax>(select(found(at), indices, Indices(-1))));
  }
  size_t at = 0;
  while (!any(found(at))) at = std::min(at + N, last);
  return at + static_cast<size_t>(fold_lanes<Term::kMin>(select(found(at), indices, Indices(N))));
}

template <Term kTerm, class T>
void extreme_rows(const void* in, size_t rows, size_t n, int64_t* out, bool select_last) {
  const T* x = static_cast<const T*>(in);
  for (size_t r = 0; r < rows; ++r, x += n) {
    size_t at = 0;
    if (n >= kFullLanes<T>) {
      at = extreme_of<kTerm, T, kFullLanes<T>>(x, n, select_last);
    } else if (n >= kSmallLanes<T>) {
      at = extreme_of<kTerm, T, kSmallLanes<T>>(x, n, select_last);
    } else {
      at = extreme_of<kTerm, T, 1>(x, n, select_last);
    }
    out[r] = static_cast<int64_t>(at);
  }
}

// Whether a value replaces the extreme so far. NaN replaces any number.
template <Term kTerm, bool kEqualToo, class V>
TREADLE_ALWAYS_INLINE auto beats(V value, V best) {
  const auto is_nan = value != value;
  if constexpr (kEqualToo) {
    return is_nan | (kTerm == Term::kMax ? value >= best : value <= best);
  } else {
    return (is_nan & (best == best)) | (kTerm == Term::kMax ? value > best : value < best);
  }
}

// As ReduceTable::extreme_columns, for kVectors of N columns. `rows` must fit a signed integer as wide as an element.
template <Term kTerm, bool kEqualToo, int N, int kVectors, class T>
TREADLE_ALWAYS_INLINE void extreme_column_block(const T* x, size_t stride, size_t rows, int64_t first, T* best,
                                                int64_t* out) {
  using V = Vec<T, N>;
  using Index = typename SizedInt<sizeof(T)>::Signed;
  using Indices = Vec<Index, N>;
  V extremes[kVectors];
  Indices indices[kVectors];
  for (int k = 0; k < kVectors; ++k) extremes[k] = V::load(best + k * N), indices[k] = Indices(-1);
  for (size_t r = 0; r < rows; ++r, x += stride) {
    const Indices here(static_cast<Index>(r));
    for (int k = 0; k < kVectors; ++k) {
      const V value = V::load(x + k * N);
      const auto wins = beats<kTerm, kEqualToo>(value, extremes[k]);
      extremes[k] = select(wins, value, extremes[k]);
      indices[k] = select(wins, here, indices[k]);
    }
  }
  for (int k = 0; k < kVectors; ++k) {
    Index lanes[N];
    extremes[k].store(best + k * N);
    indices[k].store(lanes);
    for (int i = 0; i < N; ++i) {
      if (lanes[i] >= 0) out[k * N + i] = first + static_cast<int64_t>(lanes[i]);
    }
  }
}

template <Term kTerm, bool kEqualToo, class T>
void extreme_columns_of(const T* x, size_t stride, size_t rows, size_t columns, int64_t first, T* best, int64_t* out) {
  constexpr size_t kMostRows = size_t{1} << 30;  // so that row numbers fit in 32 bits
  for (size_t count; rows > 0; rows -= count, first += static_cast<int64_t>(count), x += count * stride) {
    count = std::min(rows, kMostRows);
    size_t c = 0;
    const auto next = [&]<int N, int kVectors>() {
      for (; c + N * kVectors <= columns; c += N * kVectors) {
        extreme_column_block<kTerm, kEqualToo, N, kVectors>(x + c, stride, count, first, best + c, out + c);
      }
    };
    next.template operator()<kFullLanes<T>, 4>();
    next.template operator()<kFullLanes<T>, 1>();
    next.template operator()<1, 1>();
  }
}

template <Term kTerm, class T>
void extreme_columns(const void* x, size_t stride, size_t rows, size_t columns, int64_t first, void* best, int64_t* out,
                     bool select_last) {
  const auto run = select_last ? extreme_columns_of<kTerm, true, T> : extreme_columns_of<kTerm, false, T>;
  run(static_cast<const T*>(x), stride, rows, columns, first, static_cast<T*>(best), out);
}

template <Term kTerm, class T>
void add_term(ReduceTable& table, ComputeType type) {
  table.row[static_cast<int>(kTerm)][static_cast<int>(type)] = reduce_row<kTerm, T>;
  table.columns[static_cast<int>(kTerm)][static_cast<int>(type)] = reduce_columns<kTerm, T>;
}

template <class T>
void add_terms(ReduceTable& table, ComputeType type) {
  add_term<Term::kMax, T>(table, type);
  add_term<Term::kMin, T>(table, type);
  if constexpr (sizeof(T) > 1) {
    add_term<Term::kSum, T>(table, type);
    add_term<Term::kAbs, T>(table, type);
    add_term<Term::kSquare, T>(table, type);
    add_term<Term::kProd, T>(table, type);
    table.extreme_rows[0][static_cast<int>(type)] = extreme_rows<Term::kMin, T>;
    table.extreme_rows[1][static_cast<int>(type)] = extreme_rows<Term::kMax, T>;
    table.extreme_columns[0][static_cast<int>(type)] = extreme_columns<Term::kMin, T>;
    table.extreme_columns[1][static_cast<int>(type)] = extreme_columns<Term::kMax, T>;
  }
  if constexpr (std::is_floating_point_v<T>) {
    add_term<Term::kExp, T>(table, type);
    add_term<Term::kCenteredSquare, T>(table, type);
    table.rows[static_cast<int>(Term::kMax)][static_cast<int>(type)] = reduce_rows<Term::kMax, T>;
    table.rows[static_cast<int>(Term::kMin)][static_cast<int>(type)] = reduce_rows<Term::kMin, T>;
    table.rows[static_cast<int>(Term::kSum)][static_cast<int>(type)] = reduce_rows<Term::kSum, T>;
    table.rows[static_cast<int>(Term::kAbs)][static_cast<int>(type)] = reduce_rows<Term::kAbs, T>;
    table.rows[static_cast<int>(Term::kSquare)][static_cast<int>(type)] = reduce_rows<Term::kSquare, T>;
    table.rows[static_cast<int>(Term::kProd)][static_cast<int>(type)] = multiply_rows<T>;
  }
}

template <class T>
void exp_row(const void* in, const void* shift_at, void* out, size_t n, double* accumulator) {
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  const T shift = *static_cast<const T*>(shift_at);
  for (size_t start = 0; start < n; start += kReduceBlock) {
    const size_t count = std::min(n - start, kReduceBlock);
    const T* from = x + start;
    T* to = y + start;
    exp_block(from, shift, to, count);
    *accumulator += static_cast<double>(reduce_block<Term::kSum>(to, count, T(0)));
  }
}

template <class T, class F>
TREADLE_ALWAYS_INLINE void map_row(const T* x, T* y, size_t n, F fn) {
  row_loop<T, false>(
      n, [x](auto lanes, size_t i) { return Vec<T, lanes.value>::load(x + i); },
      [y, fn](size_t i, auto v) { fn(v).store(y + i); });
}

template <class T, bool kLog>
void softmax_rows(const void* in, void* out, size_t rows, size_t n) {
  constexpr size_t kRows = 16, kElements = 1024;  // processed together, so that their logarithms and quotients overlap
  const size_t at_once = std::clamp(kElements / n, size_t{1}, kRows);
  const T* x = static_cast<const T*>(in);
  T* y = static_cast<T*>(out);
  for (size_t count; rows > 0; rows -= count, x += count * n, y += count * n) {
    count = std::min(rows, at_once);
    T shifts[kRows], last[kRows];
    double sums[kRows];
    for (size_t r = 0; r < count; ++r) {
      double largest = -HUGE_VAL;
      combine_into<Term::kMax, T>(largest, reduce_block<Term::kMax>(x + r * n, n, T(0)));
      shifts[r] = static_cast<T>(largest);
    }
    for (size_t r = 0; r < count; ++r) {
      if constexpr (kLog) {
        sums[r] = 0 + static_cast<double>(reduce_block<Term::kExp>(x + r * n, n, shifts[r]));
      } else {
        exp_block(x + r * n, shifts[r], y + r * n, n);
        sums[r] = 0 + static_cast<double>(reduce_block<Term::kSum>(y + r * n, n, T(0)));
      }
    }
    for (size_t r = 0; r < count; ++r) last[r] = static_cast<T>(kLog ? std::log(sums[r]) : 1 / sums[r]);
    for (size_t r = 0; r < count; ++r) {
      const T shift = shifts[r], factor = last[r];
      T* const row = y + r * n;
      if constexpr (kLog) {
        map_row(x + r * n, row, n, [=](auto v) { return (v - decltype(v)(shift)) - decltype(v)(factor); });
      } else {
        map_row(row, row, n, [=](auto v) { return v * decltype(v)(factor); });
      }
    }
  }
}

template <class T>
void norm_row(const void* in, const void* mean_at, const void* inv_std_at, const void* scale, const void* bias,
              void* out, size_t n) {
  const T* x = static_cast<const T*>(in);
  const T* w = static_cast<const T*>(scale);
  const T* b = static_cast<const T*>(bias);
  T* y = static_cast<T*>(out);
  const T mean = *static_cast<const T*>(mean_at);
  const T inv_std = *static_cast<const T*>(inv_std_at);
  row_loop<T, false>(
      n, [x](auto lanes, size_t i) { return Vec<T, lanes.value>::load(x + i); },
      [=](size_t i, auto v) {
        using V = decltype(v);
        v = (v - V(mean)) * V(inv_std);
        if (w != nullptr) v = v * V::load(w + i);
        if (b != nullptr) v = v + V::load(b + i);
        v.store(y + i);
      });
}

}  // namespace

void add_reductions(KernelTable& table) {
  ReduceTable& reduce = table.reduce;
  add_terms<float>(reduce, ComputeType::kF32);
  add_terms<double>(reduce, ComputeType::kF64);
  add_terms<int32_t>(reduce, ComputeType::kI32);
  add_terms<int64_t>(reduce, ComputeType::kI64);
  add_terms<uint32_t>(reduce, ComputeType::kU32);
  add_terms<uint64_t>(reduce, ComputeType::kU64);
  add_terms<uint8_t>(reduce, ComputeType::kBool);
  reduce.exp_row[0] = exp_row<float>;
  reduce.exp_row[1] = exp_row<double>;
  reduce.softmax_rows[0][0] = softmax_rows<float, false>;
  reduce.softmax_rows[0][1] = softmax_rows<double, false>;
  reduce.softmax_rows[1][0] = softmax_rows<float, true>;
  reduce.softmax_rows[1][1] = softmax_rows<double, true>;
  reduce.norm_row[0] = norm_row<float>;
  reduce.norm_row[1] = norm_row<double>;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
