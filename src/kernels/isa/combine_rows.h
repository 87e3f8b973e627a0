#pragma once
// Combines the elements of rows in vectors, in the order of kernels/sum_order.h. The caller provides the elements.
//
// Included by sources in isa/ only, which are compiled once per instruction set.

#include <utility>

#include "kernels/elementwise_functions.h"
#include "kernels/isa/reduce_table.h"
#include "kernels/isa/vector.h"
#include "kernels/sum_order.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template <Term kTerm, class V>
TREADLE_ALWAYS_INLINE V combine(V a, V b) {
  if constexpr (kTerm == Term::kMax) {
    return functions::Max::eval(a, b);
  } else if constexpr (kTerm == Term::kMin) {
    return functions::Min::eval(a, b);
  } else if constexpr (kTerm == Term::kProd) {
    return a * b;
  } else {
    return a + b;
  }
}

template <int kFirst, int kCount, class T, int N, size_t... kLane>
TREADLE_ALWAYS_INLINE Vec<T, kCount> some_lanes(Vec<T, N> v, std::index_sequence<kLane...>) {
  return Vec<T, kCount>::of(__builtin_shufflevector(v.v, v.v, (kFirst + static_cast<int>(kLane))...));
}

// Lane j of the low or high halves of the segments (kSegment lanes each) of a and then of b.
template <int N, int kSegment, bool kHigh>
constexpr int lane_of_halves(int j) {
  constexpr int kHalf = kSegment / 2, kSegments = N / kSegment;
  const int segment = j / kHalf;
  const int base = segment < kSegments ? segment * kSegment : N + (segment - kSegments) * kSegment;
  return base + j % kHalf + (kHigh ? kHalf : 0);
}

template <bool kHigh, int kSegment, class T, int N, size_t... kLane>
TREADLE_ALWAYS_INLINE Vec<T, N> halves(Vec<T, N> a, Vec<T, N> b, std::index_sequence<kLane...>) {
  return Vec<T, N>::of(
      __builtin_shufflevector(a.v, b.v, (lane_of_halves<N, kSegment, kHigh>(static_cast<int>(kLane)))...));
}

template <class T, int N, int kCount>
struct Vectors {
  Vec<T, N> v[kCount];
};

template <Term kTerm, class T, int N, int kCount>
TREADLE_ALWAYS_INLINE Vectors<T, N, kCount> combine(const Vectors<T, N, kCount>& a, const Vectors<T, N, kCount>& b) {
  Vectors<T, N, kCount> combined;
  for (int k = 0; k < kCount; ++k) combined.v[k] = combine<kTerm>(a.v[k], b.v[k]);
  return combined;
}

// fn(lower half of the lanes, upper half), or `v` if it has one lane.
template <class T, int N, class Fn>
TREADLE_ALWAYS_INLINE Vec<T, 1> split_lanes(Vec<T, N> v, const Fn& fn) {
  if constexpr (N == 1) {
    return v;
  } else if constexpr (N == 2) {
    return fn(Vec<T, 1>::of(v.v[0]), Vec<T, 1>::of(v.v[1]));
  } else {
    const auto lanes = std::make_index_sequence<N / 2>();
    return fn(some_lanes<0, N / 2>(v, lanes), some_lanes<N / 2, N / 2>(v, lanes));
  }
}
// The same of N rows: `rows` has kSegment lanes of each, one row behind the other.
template <class T, int N, int kSegment, class Fn>
TREADLE_ALWAYS_INLINE Vec<T, N> split_lanes(const Vectors<T, N, kSegment>& rows, const Fn& fn) {
  if constexpr (kSegment == 1) {
    return rows.v[0];
  } else {
    const auto lanes = std::make_index_sequence<N>();
    Vectors<T, N, kSegment / 2> low, high;
    for (int r = 0; r < kSegment / 2; ++r) {
      low.v[r] = halves<false, kSegment>(rows.v[2 * r], rows.v[2 * r + 1], lanes);
      high.v[r] = halves<true, kSegment>(rows.v[2 * r], rows.v[2 * r + 1], lanes);
    }
    return fn(low, high);
  }
}

template <Term kTerm>
struct Combiner {
  template <class V>
  TREADLE_ALWAYS_INLINE static V combine(const V& a, const V& b) {
    return TREADLE_ISA_NAMESPACE::combine<kTerm>(a, b);
  }
  template <class V, class Fn>
  TREADLE_ALWAYS_INLINE static auto split(const V& v, const Fn& fn) {
    return split_lanes(v, fn);
  }
};

template <Term kTerm, class T, int N>
TREADLE_ALWAYS_INLINE T fold_lanes(Vec<T, N> v) {
  return sum_order::fold_lanes<Vec<T, 1>>(Combiner<kTerm>(), v).v;
}

// n elements of a row, or of rows that are combined at once. element_at(k): element k. vector_at(k): the vector from
// element k on.
template <Term kTerm, class T, class VectorAt, class ElementAt>
struct RowBlock : sum_order::KnownLength, Combiner<kTerm> {
  const VectorAt& vector_at;
  const ElementAt& element_at;

  using Element = Vec<T, 1>;
  static constexpr size_t lanes() { return kFullLanes<T>; }
  TREADLE_ALWAYS_INLINE auto element(size_t i) const { return element_at(i); }
  TREADLE_ALWAYS_INLINE auto vector(size_t i) const { return vector_at(i); }
  TREADLE_ALWAYS_INLINE static Vec<T, kFullLanes<T>> new_vector() { return {}; }
};

template <Term kTerm, class T, class VectorAt, class ElementAt>
TREADLE_ALWAYS_INLINE RowBlock<kTerm, T, VectorAt, ElementAt> block_of(size_t n, const VectorAt& vector_at,
                                                                       const ElementAt& element_at) {
  return {{n}, {}, vector_at, element_at};
}

// Combines 1 <= n <= kReduceBlock elements.
template <Term kTerm, class T, class VectorAt, class ElementAt>
TREADLE_ALWAYS_INLINE T combine_row(size_t n, const VectorAt& vector_at, const ElementAt& element_at) {
  Vec<T, 1> total;
  sum_order::combine_block(block_of<kTerm, T>(n, vector_at, element_at), total);
  return total.v;
}

// Lane j of the transpose of kApart x kApart blocks in two vectors that are kApart rows apart.
template <int N, int kApart, bool kSecond>
constexpr int lane_of_transposed(int j) {
  const bool is_far = j / kApart % 2 == 1;
  if (kSecond) return is_far ? N + j : j + kApart;
  return is_far ? N + j - kApart : j;
}

template <int kApart, class T, int N, size_t... kLane>
TREADLE_ALWAYS_INLINE void transpose_blocks(Vec<T, N>* rows, std::index_sequence<kLane...> lanes) {
  if constexpr (kApart < N) {
    for (int i = 0; i < N; ++i) {
      if (i / kApart % 2 == 1) continue;
      const Vec<T, N> a = rows[i], b = rows[i + kApart];
      rows[i] = Vec<T, N>::of(
          __builtin_shufflevector(a.v, b.v, (lane_of_transposed<N, kApart, false>(static_cast<int>(kLane)))...));
      rows[i + kApart] = Vec<T, N>::of(
          __builtin_shufflevector(a.v, b.v, (lane_of_transposed<N, kApart, true>(static_cast<int>(kLane)))...));
    }
    transpose_blocks<2 * kApart>(rows, lanes);
  }
}

// Transposes N vectors of N lanes.
template <class T, int N>
TREADLE_ALWAYS_INLINE void transpose(Vec<T, N>* rows) {
  transpose_blocks<1>(rows, std::make_index_sequence<N>());
}

// Combines each of kFullLanes short rows of n >= kFullLanes elements. The lanes of all rows are folded together, since
// folding takes most of the time. at(r, k): the vector of row r from element k on.
template <Term kTerm, class T, class At>
TREADLE_ALWAYS_INLINE Vec<T, kFullLanes<T>> combine_short_rows(size_t n, const At& at) {
  constexpr int N = kFullLanes<T>;
  Vectors<T, N, N> rows;
  size_t end = 0;
  for (size_t r = 0; r < N; ++r) {
    const auto row = [&](size_t k) { return at(r, k); };
    sum_order::combine_vectors(block_of<kTerm, T>(n, row, row), end, rows.v[r]);
  }
  Vec<T, N> total = sum_order::fold_lanes<Vec<T, N>>(Combiner<kTerm>(), rows);
  if (end == n) return total;
  for (size_t r = 0; r < N; ++r) rows.v[r] = at(r, n - N);
  transpose(rows.v);
  const auto elements = [&](size_t k) { return rows.v[k + N - n]; };
  sum_order::take_elements(block_of<kTerm, T>(n, elements, elements), end, total);
  return total;
}

// The same for 1 <= n < kFullLanes elements. row(r): the vector of row r; lanes behind the row may hold anything.
template <Term kTerm, class T, class Row>
TREADLE_ALWAYS_INLINE Vec<T, kFullLanes<T>> combine_shortest_rows(size_t n, const Row& row) {
  constexpr size_t N = kFullLanes<T>;
  Vec<T, N> rows[N], total;
  for (size_t r = 0; r < N; ++r) rows[r] = row(r);
  transpose(rows);
  const auto elements = [&](size_t k) { return rows[k]; };
  sum_order::combine_in_order(block_of<kTerm, T>(n, elements, elements), total);
  return total;
}

template <class T>
inline constexpr size_t kShortRow = 8 * kFullLanes<T>;  // the longest row for which combine_short_rows is faster

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
