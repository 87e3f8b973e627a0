#pragma once
// Products with one or two columns: C[i,j] is the dot product of a row of A and a column of B. Long ones are summed in
// kDotSums vectors side by side (element p goes to vector p / lanes % kDotSums, lane p % lanes) that are added pairwise
// at the end, short ones as ReduceSum sums products (kGemmShortDot).

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/in_pieces.h"
#include "kernels/gemm.h"
#include "kernels/isa/combine_rows.h"
#include "kernels/isa/gemm/epilogue.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int kDotSums = 4;
inline constexpr int kDotRows = 2;  // rows that share the loads of a column

template <class T>
constexpr bool is_short_dot(int64_t k) {
  return !std::is_integral_v<T> && k > 0 && k <= kGemmShortDot;
}
// Rows of A that are worked on at a time.
template <class T>
constexpr int64_t dot_rows(int64_t k) {
  return is_short_dot<T>(k) ? kFullLanes<T> : kDotRows;
}

template <class T>
T sum_lanes(const typename Lanes<T>::V (&sums)[kDotSums]) {
  using L = Lanes<T>;
  T lanes[L::kCount];
  L::store(lanes, L::add(L::add(sums[0], sums[1]), L::add(sums[2], sums[3])));
  for (int width = L::kCount / 2; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// out[r] = sum over p < k of a[r][p] * b[p], unless `stop` tells it to end early.
template <class T, int kRows>
void dot(const T* const (&a)[kRows], const T* b, int64_t k, T (&out)[kRows], StopPoll& stop) {
  using L = Lanes<T>;
  typename L::V sums[kRows][kDotSums];
  for (auto& row : sums) {
    for (auto& sum : row) sum = L::zero();
  }
  constexpr int64_t kStep = kDotSums * L::kCount, kPiece = (1 << 18) / kStep * kStep;
  const int64_t whole = k / kStep * kStep;
  int64_t p = 0;
  while (p < whole) {
    const int64_t first = p, end = std::min(whole, p + kPiece);
    for (; p < end; p += kStep) {
      for (int s = 0; s < kDotSums; ++s) {
        const auto bv = L::load(b + p + s * L::kCount);
        for (int r = 0; r < kRows; ++r) sums[r][s] = L::mul_add(L::load(a[r] + p + s * L::kCount), bv, sums[r][s]);
      }
    }
    if (stop.after(kProductNs * static_cast<double>((end - first) * kRows))) return;
  }
  for (int s = 0; s < kDotSums && p < k; ++s, p += L::kCount) {
    const auto mask = L::mask(static_cast<int>(std::min<int64_t>(k - p, L::kCount)));
    const auto bv = L::load(b + p, mask);
    for (int r = 0; r < kRows; ++r) sums[r][s] = L::mul_add(L::load(a[r] + p, mask), bv, sums[r][s]);
  }
  for (int r = 0; r < kRows; ++r) out[r] = sum_lanes<T>(sums[r]);
}

template <class T>
T finish_one(T sum, const Epilogue<T>& e, int64_t c_row, int64_t i, int64_t j) {
  if (e.alpha != T(1)) sum *= e.alpha;
  if (e.bias != nullptr) {
    const T addend = e.bias[i * e.bias_row + j * e.bias_col];
    sum += e.beta != T(1) ? e.beta * addend : addend;
  }
  if (e.addend != nullptr) sum += e.addend[i * c_row + j];
  if (e.clamps) sum = sum < e.low ? e.low : sum > e.high ? e.high : sum;
  return sum;
}

template <class T>
const T* contiguous(const T* from, int64_t stride, int64_t count, T* scratch) {
  if (stride == 1) return from;
  for (int64_t p = 0; p < count; ++p) scratch[p] = from[p * stride];
  return scratch;
}

// out[r] = sum over p < k of a[r][p] * b[p], in the order of a row that is reduced.
template <class T>
void short_dots(const T* const* a, const T* b, int64_t k, int64_t rows, T* out) {
  constexpr int N = kFullLanes<T>;
  using V = Vec<T, N>;
  using S = Vec<T, 1>;
  const auto n = static_cast<size_t>(k);
  const auto at = [&](size_t r, size_t p) { return V::load(a[r] + p) * V::load(b + p); };
  const auto single = [&](size_t r, size_t p) { return S::of(a[r][p]) * S::of(b[p]); };
  if (rows == N && n >= N && n <= kShortRow<T>) {
    combine_short_rows<Term::kSum, T>(n, at).store(out);
  } else if (rows == N && n < N) {
    const auto mask = Lanes<T>::mask(static_cast<int>(k));
    const auto start = [&](const T* from) { return V::of((typename V::Native)Lanes<T>::load(from, mask)); };
    const V column = start(b);
    combine_shortest_rows<Term::kSum, T>(n, [&](size_t r) { return start(a[r]) * column; }).store(out);
  } else {
    for (size_t r = 0; r < static_cast<size_t>(rows); ++r) {
      out[r] =
          combine_row<Term::kSum, T>(n, [&](size_t p) { return at(r, p); }, [&](size_t p) { return single(r, p); });
    }
  }
  for (int64_t r = 0; r < rows; ++r) out[r] += T(0);  // never -0
}

template <class T>
void run_dots(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
  const GemmShape& s = plan.shape;
  const auto epilogue = make_epilogue<T>(plan, operands);
  const T* a = static_cast<const T*>(operands.a);
  const T* b = static_cast<const T*>(operands.b);
  T* row_scratch = static_cast<T*>(operands.scratch);
  T* column_scratch = row_scratch + dot_rows<T>(s.k) * s.k;
  const T* columns[kGemmDotColumns];
  for (int64_t j = range.column_begin; j < range.column_end; ++j) {
    columns[j] = s.b_packed ? b + j * s.k : contiguous(b + j * s.b_col, s.b_row, s.k, column_scratch + j * s.k);
  }
  // sums(rows, column, out): the products of the rows and a column.
  const auto rows_from = [&]<int kRows>(int64_t i, int64_t count, std::integral_constant<int, kRows>, auto sums) {
    const T* rows[kRows];
    T out[kRows];
    for (int r = 0; r < count; ++r) rows[r] = contiguous(a + (i + r) * s.a_row, s.a_col, s.k, row_scratch + r * s.k);
    for (int64_t j = range.column_begin; j < range.column_end; ++j) {
      sums(rows, columns[j], out);
      for (int r = 0; r < count; ++r) {
        static_cast<T*>(operands.c)[(i + r) * s.c_row + j] = finish_one(out[r], epilogue, s.c_row, i + r, j);
      }
    }
  };
  int64_t i = range.row_begin;
  if (is_short_dot<T>(s.k)) {
    for (int64_t count; i < range.row_end; i += count) {
      count = std::min<int64_t>(kFullLanes<T>, range.row_end - i);
      rows_from(i, count, std::integral_constant<int, kFullLanes<T>>(),
                [&](const T* const* rows, const T* column, T* out) { short_dots(rows, column, s.k, count, out); });
    }
    return;
  }
  StopPoll stop;
  const auto long_dots = [&]<int kRows>(const T* const(&rows)[kRows], const T* column, T(&out)[kRows]) {
    dot<T, kRows>(rows, column, s.k, out, stop);
  };
  for (; i + kDotRows <= range.row_end; i += kDotRows) {
    rows_from(i, kDotRows, std::integral_constant<int, kDotRows>(), long_dots);
  }
  for (; i < range.row_end; ++i) rows_from(i, 1, std::integral_constant<int, 1>(), long_dots);
}

// Columns of B one after the other.
template <class T>
void pack_dots(const GemmPlan& plan, const void* b, void* packed, StopPoll& stop) {
  const GemmShape& s = plan.shape;
  for (int64_t j = 0; j < s.n; ++j) {
    const bool goes_on = in_pieces(s.k, kPackedNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t p = begin; p < end; ++p) {
        static_cast<T*>(packed)[j * s.k + p] = static_cast<const T*>(b)[p * s.b_row + j * s.b_col];
      }
    });
    if (!goes_on) return;
  }
}

template <class T>
struct DotsWalk {
  static constexpr std::string_view kName = "dots";
  static bool fits(const GemmPlan& plan, int64_t) { return plan.shape.n <= kGemmDotColumns; }
  static bool pays(const GemmPlan&, int64_t) { return true; }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    run_dots<T>(plan, operands, range);
  }
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
