#pragma once
// Quotients that are rounded to bytes. A division takes as long as eight products, so quotients are products with the
// reciprocal, unless one of them lies so near the middle of two whole numbers that a division could be rounded to the
// other one. What is rounded is thus what a division gives.

#include <cmath>

#include "kernels/isa/vector.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

class ByteQuotients {
 public:
  explicit ByteQuotients(float divisor) : divisor_(divisor) {
    constexpr float kLeast = 0x1p-100f, kMost = 0x1p100f;
    const float size = std::fabs(divisor);
    if (size >= kLeast && size <= kMost) reciprocal_ = 1 / divisor;
  }

  // Rounds as x / divisor does wherever that lies within 512 of 0.
  template <int N>
  TREADLE_ALWAYS_INLINE Vec<float, N> operator()(Vec<float, N> x) const {
    using V = Vec<float, N>;
    // The product is off by 2^-13 at most.
    const V kRound(12582912.f), kNear(0.4998f * 0.4998f);  // 1.5 * 2^23: adding it leaves no room for a fraction
    const V quotient = x * V(reciprocal_);
    const V rest = quotient - ((quotient + kRound) - kRound);
    if (reciprocal_ == 0 || any(rest * rest > kNear)) [[unlikely]]
      return x / V(divisor_);
    return quotient;
  }

 private:
  float divisor_, reciprocal_ = 0;
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
