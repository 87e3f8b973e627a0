#pragma once
// Quotients that are rounded to bytes. A division takes as long as eight products, so quotients are products with the
// reciprocal, unless one of them lies so near the middle of two whole numbers that a division could be rounded to the
// other one. What is rounded is thus what a division gives.

#include <cmath>

#include "kernels/isa/vector.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

class ByteQuotients {
 public:
  explicit ByteQuotients(float divisor) : divisor_(divisor) {
    constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
    const float size = std::fabs(divisor);
    if (size >= kLeast && size <= kMost) reciprocal_ = 1 / divisor;
  }

  // x / divisor, rounded to a whole number, ties to even, wherever that lies within 512 of 0.
  template <int N>
  TREADLE_ALWAYS_INLINE Vec<float, N> operator()(Vec<float, N> x) const {
    using V = Vec<float, N>;
    // The product is off by 2^-13 at most.
    const V near(0.4998f * 0.4998f);
    const V quotient = x * V(reciprocal_), whole = rounded(quotient), rest = quotient - whole;
    if (reciprocal_ == 0 || found(rest * rest > near)) [[unlikely]]
      return rounded(x / V(divisor_));
    return whole;
  }

  template <int N>
  TREADLE_ALWAYS_INLINE static Vec<float, N> rounded(Vec<float, N> x) {
    const Vec<float, N> round(12582912.f);  // 1.5 * 2^23: adding it leaves no room for a fraction
    return (x + round) - round;
  }

 private:
  template <int N>
  TREADLE_ALWAYS_INLINE static bool found(Mask<4, N> mask) {
#if defined(__AVX512F__)
    if constexpr (N == 16) return _mm512_test_epi32_mask((__m512i)mask.v, (__m512i)mask.v) != 0;
#elif defined(__AVX2__)
    if constexpr (N == 8) return _mm256_movemask_ps((__m256)mask.v) != 0;
#endif
    return any(mask);
  }

  float divisor_, reciprocal_ = 0;
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
