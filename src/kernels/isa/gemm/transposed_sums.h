#pragma once
// Sums of a few rows of A with a transposed B that is not packed. Columns of C are in the lanes; four steps of eight
// columns of B are transposed in registers at a time. With so few rows, a copy of B in panels would take longer than
// the sums themselves.

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/gemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int kTransposedRows = 4;
inline constexpr int64_t kTransposedSteps = 4, kTransposedColumns = 16;  // at a time
inline constexpr int64_t kTransposedLag = 64;                            // see transposed_sums
inline constexpr int64_t kTransposedLong = 256;                          // steps from which on more than one row gains

struct TransposedOperands {
  const float* a;
  int64_t a_row, a_col;
  const float* b;  // element (p, j) is b[p + j * b_col]
  int64_t b_col;
  float* sums;  // row r at sums + r * sum_row
  int64_t sum_row;
};

// Adds steps [p, p + kTransposedSteps) of eight columns from column j on to `sums`.
template <int kRows>
[[gnu::always_inline]] inline void add_transposed(const TransposedOperands& o, int64_t p, int64_t j,
                                                  __m256 (&sums)[kRows]) {
  __m256 steps[kTransposedSteps];
  transpose_stripe(o.b + p + j * o.b_col, o.b_col, steps);
  for (int s = 0; s < kTransposedSteps; ++s) {
    for (int r = 0; r < kRows; ++r) {
      sums[r] = _mm256_fmadd_ps(_mm256_broadcast_ss(o.a + r * o.a_row + (p + s) * o.a_col), steps[s], sums[r]);
    }
  }
}

// Sums of sixteen columns from column j on over the first `steps` steps, a multiple of kTransposedSteps. The second
// eight columns follow `lag` steps behind the first: two chains hide each other's latency, and where the columns of B
// are whole ways of a cache apart, sixteen of them at the same step would push each other out of it.
template <int kRows>
void transposed_sums(const TransposedOperands& o, int64_t j, int64_t steps, int64_t lag) {
  __m256 first[kRows], second[kRows];
  for (int r = 0; r < kRows; ++r) first[r] = second[r] = _mm256_setzero_ps();
  for (int64_t p = 0; p < lag; p += kTransposedSteps) add_transposed(o, p, j, first);
  for (int64_t p = lag; p < steps; p += kTransposedSteps) {
    add_transposed(o, p, j, first);
    add_transposed(o, p - lag, j + 8, second);
  }
  for (int64_t p = steps - lag; p < steps; p += kTransposedSteps) add_transposed(o, p, j + 8, second);
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(o.sums + r * o.sum_row + j, first[r]);
    _mm256_storeu_ps(o.sums + r * o.sum_row + j + 8, second[r]);
  }
}

inline void transposed_sums(int64_t rows, const TransposedOperands& o, int64_t j, int64_t steps, int64_t lag) {
  switch (rows) {
    case 1:
      return transposed_sums<1>(o, j, steps, lag);
    case 2:
      return transposed_sums<2>(o, j, steps, lag);
    case 3:
      return transposed_sums<3>(o, j, steps, lag);
    default:
      return transposed_sums<kTransposedRows>(o, j, steps, lag);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

#endif
