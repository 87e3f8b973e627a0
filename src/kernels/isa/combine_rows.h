#pragma once
// The order in which the elements of a row are combined into one (kernels/reduce.h). The caller provides the elements.
//
// Included by sources in isa/ only, which are compiled once per instruction set.

#include <utility>

#include "kernels/elementwise_functions.h"
#include "kernels/isa/reduce_table.h"
#include "kernels/isa/vector.h"

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

// Combines lane i with lane i + N/2, then halves again until one lane remains.
template <Term kTerm, class T, int N>
TREADLE_ALWAYS_INLINE T fold_lanes(Vec<T, N> v) {
  if constexpr (N == 2) {
    return combine<kTerm>(Vec<T, 1>::of(v.v[0]), Vec<T, 1>::of(v.v[1])).v;
  } else if constexpr (N > 2) {
    constexpr int kHalf = N / 2;
    const auto lanes = std::make_index_sequence<kHalf>();
    return fold_lanes<kTerm>(combine<kTerm>(some_lanes<0, kHalf>(v, lanes), some_lanes<kHalf, kHalf>(v, lanes)));
  } else {
    return v.v;
  }
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

// Folds N vectors as fold_lanes does: lane r of rows[0] becomes the result of vector r.
template <Term kTerm, int kSegment, class T, int N>
TREADLE_ALWAYS_INLINE void fold_together(Vec<T, N>* rows) {
  if constexpr (kSegment > 1) {
    const auto lanes = std::make_index_sequence<N>();
    for (int r = 0; r < kSegment / 2; ++r) {
      const Vec<T, N> a = rows[2 * r], b = rows[2 * r + 1];
      rows[r] = combine<kTerm>(halves<false, kSegment>(a, b, lanes), halves<true, kSegment>(a, b, lanes));
    }
    fold_together<kTerm, kSegment / 2>(rows);
  }
}

// Combines the whole vectors of a row of n >= N elements: four chains side by side, then single vectors. at(k): the
// vector from element k on. Returns N partial results, and sets `end` to the number of elements that they cover.
template <Term kTerm, class T, class At>
TREADLE_ALWAYS_INLINE Vec<T, kFullLanes<T>> combine_vectors(size_t n, size_t& end, const At& at) {
  constexpr int N = kFullLanes<T>;
  Vec<T, N> sums[4] = {at(0), {}, {}, {}};
  size_t i = N;
  if (n >= 4 * N) {
    for (int k = 1; k < 4; ++k) sums[k] = at(static_cast<size_t>(k) * N);
    for (i = 4 * N; i + 4 * N <= n; i += 4 * N) {
      for (int k = 0; k < 4; ++k) sums[k] = combine<kTerm>(sums[k], at(i + static_cast<size_t>(k) * N));
    }
    sums[0] = combine<kTerm>(combine<kTerm>(sums[0], sums[1]), combine<kTerm>(sums[2], sums[3]));
  }
  for (; i + N <= n; i += N) sums[0] = combine<kTerm>(sums[0], at(i));
  end = i;
  return sums[0];
}

// Combines 1 <= n <= kReduceBlock elements: whole vectors first, then the remaining elements in order. single(k):
// element k.
template <Term kTerm, class T, class At, class Single>
TREADLE_ALWAYS_INLINE T combine_row(size_t n, const At& at, const Single& single) {
  size_t i = 0;
  Vec<T, 1> total;
  bool started = false;
  if (n >= kFullLanes<T>) {
    total = Vec<T, 1>::of(fold_lanes<kTerm>(combine_vectors<kTerm, T>(n, i, at)));
    started = true;
  }
  for (; i < n; ++i) {
    const Vec<T, 1> value = single(i);
    total = started ? combine<kTerm>(total, value) : value;
    started = true;
  }
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
  constexpr size_t N = kFullLanes<T>;
  Vec<T, N> rows[N];
  size_t end = 0;
  for (size_t r = 0; r < N; ++r) rows[r] = combine_vectors<kTerm, T>(n, end, [&](size_t k) { return at(r, k); });
  fold_together<kTerm, static_cast<int>(N)>(rows);
  Vec<T, N> total = rows[0];
  if (end == n) return total;
  for (size_t r = 0; r < N; ++r) rows[r] = at(r, n - N);
  transpose(rows);
  for (size_t k = N - (n - end); k < N; ++k) total = combine<kTerm>(total, rows[k]);
  return total;
}

// The same for 1 <= n < kFullLanes elements. row(r): the vector of row r; lanes behind the row may hold anything.
template <Term kTerm, class T, class Row>
TREADLE_ALWAYS_INLINE Vec<T, kFullLanes<T>> combine_shortest_rows(size_t n, const Row& row) {
  constexpr size_t N = kFullLanes<T>;
  Vec<T, N> rows[N];
  for (size_t r = 0; r < N; ++r) rows[r] = row(r);
  transpose(rows);
  for (size_t k = 1; k < n; ++k) rows[0] = combine<kTerm>(rows[0], rows[k]);
  return rows[0];
}

template <class T>
inline constexpr size_t kShortRow = 8 * kFullLanes<T>;  // the longest row for which combine_short_rows is faster

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
