#pragma once
// Products with one or two columns: C[i,j] is the dot product of a row of A and a column of B, summed in kDotSums
// vectors side by side (element p goes to vector p / lanes % kDotSums, lane p % lanes) that are added pairwise at the
// end.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/gemm.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int kDotSums = 4;
inline constexpr int kDotRows = 2;  // rows that share the loads of a column

template <class T>
T to_element(double value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<int64_t>(value));
  } else {
    return static_cast<T>(value);
  }
}

template <class T>
Epilogue<T> make_epilogue(const GemmPlan& plan, const GemmOperands& operands) {
  const GemmShape& s = plan.shape;
  Epilogue<T> e{to_element<T>(s.alpha), to_element<T>(s.beta), static_cast<const T*>(operands.bias), s.bias_row,
                s.bias_col};
  if constexpr (!std::is_integral_v<T>) {
    e.addend = static_cast<const T*>(operands.addend);
    e.clamps = s.low != -__builtin_inff() || s.high != __builtin_inff();
    e.low = static_cast<T>(s.low);
    e.high = static_cast<T>(s.high);
  }
  return e;
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

// out[r] = sum over p < k of a[r][p] * b[p].
template <class T, int kRows>
void dot(const T* const (&a)[kRows], const T* b, int64_t k, T (&out)[kRows]) {
  using L = Lanes<T>;
  typename L::V sums[kRows][kDotSums];
  for (auto& row : sums) {
    for (auto& sum : row) sum = L::zero();
  }
  int64_t p = 0;
  for (; p + kDotSums * L::kCount <= k; p += kDotSums * L::kCount) {
    for (int s = 0; s < kDotSums; ++s) {
      const auto bv = L::load(b + p + s * L::kCount);
      for (int r = 0; r < kRows; ++r) sums[r][s] = L::mul_add(L::load(a[r] + p + s * L::kCount), bv, sums[r][s]);
    }
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

template <class T>
void run_dots(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
  const GemmShape& s = plan.shape;
  const auto epilogue = make_epilogue<T>(plan, operands);
  const T* a = static_cast<const T*>(operands.a);
  const T* b = static_cast<const T*>(operands.b);
  T* row_scratch = static_cast<T*>(operands.scratch);
  const T* columns[kGemmDotColumns];
  for (int64_t j = range.column_begin; j < range.column_end; ++j) {
    columns[j] =
        s.b_packed ? b + j * s.k : contiguous(b + j * s.b_col, s.b_row, s.k, row_scratch + (kDotRows + j) * s.k);
  }
  const auto rows_from = [&]<int kRows>(int64_t i, std::integral_constant<int, kRows>) {
    const T* rows[kRows];
    T sums[kRows];
    for (int r = 0; r < kRows; ++r) rows[r] = contiguous(a + (i + r) * s.a_row, s.a_col, s.k, row_scratch + r * s.k);
    for (int64_t j = range.column_begin; j < range.column_end; ++j) {
      dot<T, kRows>(rows, columns[j], s.k, sums);
      for (int r = 0; r < kRows; ++r) {
        static_cast<T*>(operands.c)[(i + r) * s.c_row + j] = finish_one(sums[r], epilogue, s.c_row, i + r, j);
      }
    }
  };
  int64_t i = range.row_begin;
  for (; i + kDotRows <= range.row_end; i += kDotRows) rows_from(i, std::integral_constant<int, kDotRows>());
  for (; i < range.row_end; ++i) rows_from(i, std::integral_constant<int, 1>());
}

// Columns of B one after the other.
template <class T>
void pack_dots(const GemmPlan& plan, const void* b, void* packed) {
  const GemmShape& s = plan.shape;
  for (int64_t j = 0; j < s.n; ++j) {
    for (int64_t p = 0; p < s.k; ++p) {
      static_cast<T*>(packed)[j * s.k + p] = static_cast<const T*>(b)[p * s.b_row + j * s.b_col];
    }
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
