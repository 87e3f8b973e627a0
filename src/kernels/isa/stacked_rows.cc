// Single rows times matrices (kernels/stacked_rows.h).

#include "kernels/stacked_rows.h"

#include <algorithm>
#include <utility>

#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

StackedRowsRun stacked_rows(ComputeType type);

namespace {

// kVectors vectors of sums for each of kMatrices matrices. If kTail, the last vector has `last_lanes` lanes.
template <class T, int kMatrices, int kVectors, bool kTail>
void sums(const StackedRows& s, const T* a, const T* b, T* c, int last_lanes) {
  using L = Lanes<T>;
  using V = typename L::V;
  const auto tail = L::mask(last_lanes);
  V acc[kMatrices][kVectors];
  unrolled<kMatrices>([&](auto g) __attribute__((always_inline)) {
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { acc[g][v] = L::zero(); });
  });
  for (int64_t p = 0; p < s.k; ++p, a += s.a_col, b += s.b_row) {
    unrolled<kMatrices>([&](auto g) __attribute__((always_inline)) {
      const V x = L::splat(a[g * s.a]);
      const T* row = b + g * s.b;
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
        const bool masked = kTail && v == kVectors - 1;
        const V y = masked ? L::load(row + v * L::kCount, tail) : L::load(row + v * L::kCount);
        acc[g][v] = L::mul_add(x, y, acc[g][v]);
      });
    });
  }
  unrolled<kMatrices>([&](auto g) __attribute__((always_inline)) {
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
      T* to = c + g * s.c + v * L::kCount;
      if (kTail && v == kVectors - 1) {
        L::store(to, tail, acc[g][v]);
      } else {
        L::store(to, acc[g][v]);
      }
    });
  });
}

// Computes `columns` columns of all matrices: kMatrices matrices at a time, then half as many, and so on. kVectors
// vectors hold the columns; the last vector may be partly filled.
template <class T, int kMatrices, int kVectors>
void all_matrices(const StackedRows& s, int64_t count, const T* a, const T* b, T* c, int64_t columns) {
  constexpr int kLanes = Lanes<T>::kCount;
  const int last_lanes = static_cast<int>(columns - (kVectors - 1) * kLanes);
  const auto run = last_lanes < kLanes ? sums<T, kMatrices, kVectors, true> : sums<T, kMatrices, kVectors, false>;
  for (; count >= kMatrices; count -= kMatrices) {
    run(s, a, b, c, last_lanes);
    a += kMatrices * s.a, b += kMatrices * s.b, c += kMatrices * s.c;
  }
  if constexpr (kMatrices > 1) all_matrices<T, kMatrices / 2, kVectors>(s, count, a, b, c, columns);
}

// Eight sums at a time hide the latency of additions.
template <class T>
void run_rows(const StackedRows& s, const void* a_begin, const void* b_begin, void* c_begin) {
  constexpr int64_t kLanes = Lanes<T>::kCount;
  const T* a = static_cast<const T*>(a_begin);
  const T* b = static_cast<const T*>(b_begin);
  T* c = static_cast<T*>(c_begin);
  if (s.n <= kLanes) return all_matrices<T, 8, 1>(s, s.count, a, b, c, s.n);
  if (s.n <= 2 * kLanes) return all_matrices<T, 4, 2>(s, s.count, a, b, c, s.n);
  if (s.n <= 4 * kLanes && s.n > 3 * kLanes) return all_matrices<T, 2, 4>(s, s.count, a, b, c, s.n);
  for (int64_t i = 0; i < s.count; ++i, a += s.a, b += s.b, c += s.c) {
    int64_t j = 0;
    for (; j + 8 * kLanes <= s.n; j += 8 * kLanes) all_matrices<T, 1, 8>(s, 1, a, b + j, c + j, 8 * kLanes);
    if (j + 4 * kLanes <= s.n) {
      all_matrices<T, 1, 4>(s, 1, a, b + j, c + j, 4 * kLanes);
      j += 4 * kLanes;
    }
    for (; j < s.n; j += 2 * kLanes) {
      const int64_t columns = std::min(s.n - j, 2 * kLanes);
      const auto part = columns > kLanes ? all_matrices<T, 1, 2> : all_matrices<T, 1, 1>;
      part(s, 1, a, b + j, c + j, columns);
    }
  }
}

}  // namespace

StackedRowsRun stacked_rows(ComputeType type) {
  switch (type) {
    case ComputeType::kF64:
      return run_rows<double>;
    case ComputeType::kI32:
    case ComputeType::kU32:
      return run_rows<uint32_t>;
    case ComputeType::kI64:
    case ComputeType::kU64:
      return run_rows<uint64_t>;
    default:
      return run_rows<float>;
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
