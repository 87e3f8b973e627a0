#pragma once
// Sums of a few rows of A with a B whose columns lie one behind the other (a transposed right side that is no
// constant): columns of C in lanes, and four steps of eight columns at a time turned round in registers. With so few
// rows, a copy of B in panels would take longer than the sums themselves.

#if defined(__AVX2__)

#include <immintrin.h>

#include <cstdint>

#include "kernels/isa/gemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int kTurnedRows = 4;
inline constexpr int64_t kTurnedSteps = 4, kTurnedColumns = 16;  // what is done at a time
inline constexpr int64_t kTurnedLag = 64;                        // see turned_sums
inline constexpr int64_t kTurnedLong = 256;                      // steps from which on more than one row gains

struct TurnedOperands {
  const float* a;
  int64_t a_row, a_col;
  const float* b;  // element (p, j) is b[p + j * b_col]
  int64_t b_col;
  float* sums;  // row r at sums + r * sum_row
  int64_t sum_row;
};

// Adds steps [p, p + kTurnedSteps) of eight columns from column j on to `sums`.
template <int kRows>
[[gnu::always_inline]] inline void add_turned(const TurnedOperands& o, int64_t p, int64_t j, __m256 (&sums)[kRows]) {
  __m256 steps[kTurnedSteps];
  transpose_stripe(o.b + p + j * o.b_col, o.b_col, steps);
  for (int s = 0; s < kTurnedSteps; ++s) {
    for (int r = 0; r < kRows; ++r) {
      sums[r] = _mm256_fmadd_ps(_mm256_broadcast_ss(o.a + r * o.a_row + (p + s) * o.a_col), steps[s], sums[r]);
    }
  }
}

// Sums of sixteen columns from column j on over the first `steps` steps, a multiple of kTurnedSteps. The second eight
// columns follow `lag` steps behind the first: two chains hide each other's latency, and where the columns of B are
// whole ways of a cache apart, sixteen of them at the same step would push each other out of it.
template <int kRows>
void turned_sums(const TurnedOperands& o, int64_t j, int64_t steps, int64_t lag) {
  __m256 first[kRows], second[kRows];
  for (int r = 0; r < kRows; ++r) first[r] = second[r] = _mm256_setzero_ps();
  for (int64_t p = 0; p < lag; p += kTurnedSteps) add_turned(o, p, j, first);
  for (int64_t p = lag; p < steps; p += kTurnedSteps) {
    add_turned(o, p, j, first);
    add_turned(o, p - lag, j + 8, second);
  }
  for (int64_t p = steps - lag; p < steps; p += kTurnedSteps) add_turned(o, p, j + 8, second);
  for (int r = 0; r < kRows; ++r) {
    _mm256_storeu_ps(o.sums + r * o.sum_row + j, first[r]);
    _mm256_storeu_ps(o.sums + r * o.sum_row + j + 8, second[r]);
  }
}

inline void turned_sums(int64_t rows, const TurnedOperands& o, int64_t j, int64_t steps, int64_t lag) {
  switch (rows) {
    case 1:
      return turned_sums<1>(o, j, steps, lag);
    case 2:
      return turned_sums<2>(o, j, steps, lag);
    case 3:
      return turned_sums<3>(o, j, steps, lag);
    default:
      return turned_sums<kTurnedRows>(o, j, steps, lag);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

#endif
