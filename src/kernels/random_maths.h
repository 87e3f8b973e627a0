#pragma once
// From random bits to normal numbers, over a value type V as in kernels/elementwise_math.h. Found by argument-dependent
// lookup, for Bits x whose lanes are whole numbers: number_of<V>(x), and of lanes with a sign signed_number_of<V>(x).
//
// No product is fused with a sum, so every instruction set gives the same bits.

#include <cstdint>

#include "kernels/elementwise_math.h"

namespace treadle::kernels::random_maths {

#define TREADLE_RANDOM_MATHS [[gnu::always_inline]] inline

// As math::polynomial, but without fused operations.
template <class V, size_t kCount>
TREADLE_RANDOM_MATHS V polynomial(V x, const typename V::Scalar (&coefficients)[kCount]) {
  V sum(coefficients[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = sum * x + V(coefficients[i]);
  return sum;
}

// Distributions take the logarithm of a uniform number with this many bits.
template <class T>
constexpr int kUnitBits = sizeof(T) == sizeof(float) ? 32 : 53;

// Converts whole numbers below 2^31 (float) or 2^53 (double). AVX2 converts signed 32-bit numbers, and unsigned 64-bit
// numbers in fewer steps than signed ones.
template <class V>
TREADLE_RANDOM_MATHS V small_number_of(typename V::Bits x) {
  if constexpr (sizeof(typename V::Scalar) == sizeof(float)) {
    return signed_number_of<V>(x);
  } else {
    return number_of<V>(x);
  }
}

// -2 ln(u) for u = (x + 1/2) / 2^kUnitBits. All bits count for both small u and small 1 - u.
template <class V>
TREADLE_RANDOM_MATHS V squared_radius(typename V::Bits x) {
  using T = typename V::Scalar;
  using B = typename V::Bits;
  using C = math::Coefficients<T>;
  using L = math::FloatLayout<T>;
  using Word = typename L::Bits;
  constexpr T kUnit = T(1) / static_cast<T>(uint64_t{1} << kUnitBits<T>);
  constexpr Word kLargest = ~Word{0} >> (sizeof(Word) * 8 - kUnitBits<T>);
  constexpr Word kOne = L::kBias << L::kMantissaBits;
  constexpr Word kRootHalf = sizeof(T) == sizeof(float) ? Word(0x3f3504f3u) : Word(0x3fe6a09e667f3bcdull);
  // u = m 2^e with m in [sqrt(1/2), sqrt(2)), as in math::log.
  const B bits = to_bits(number_of<V>(x) + V(T(0.5)));
  const B biased = (bits + B(kOne - kRootHalf)) >> L::kMantissaBits;
  const V m = from_bits_of<V>(bits - (biased << L::kMantissaBits) + B(kOne));
  const V magic(L::kRoundingMagic);
  const V e = from_bits_of<V>(to_bits(magic) + biased) - magic - V(T(L::kBias + kUnitBits<T>));
  const V below_one = (small_number_of<V>(B(kLargest) - x) + V(T(0.5))) * V(-kUnit);
  const V f = select(e == V(T(0)), below_one, m - V(T(1)));
  const V s = f / (V(T(2)) + f), z = s * s, half_square = V(T(0.5)) * f * f;
  const V tail = s * (half_square + z * polynomial(z, C::kLog));
  return V(T(-2)) * (e * V(C::kLn2High) + (f - (half_square - (tail + e * V(C::kLn2Low)))));
}

// An angle within an eighth of a turn of 0, made from all bits of x except the two highest.
template <class V>
TREADLE_RANDOM_MATHS V eighth_turn(typename V::Bits x) {
  using T = typename V::Scalar;
  constexpr T kQuarterTurn = T(1.57079632679489661923);
  if constexpr (sizeof(T) == sizeof(float)) {
    return signed_number_of<V>(x << 2) * V(kQuarterTurn * T(0x1p-32));
  } else {
    return (number_of<V>((x << 2) >> 11) - V(T(0x1p52))) * V(kQuarterTurn * T(0x1p-53));
  }
}

template <class V>
struct Pair {
  V first, second;
};

// Two independent normal numbers made from uniform bits (Box and Muller). A sign and an exchange of coordinates put the
// point at the angle into one of the four quarters of the circle.
template <class V>
TREADLE_RANDOM_MATHS Pair<V> normals(typename V::Bits x, typename V::Bits y) {
  using T = typename V::Scalar;
  using B = typename V::Bits;
  using C = math::Coefficients<T>;
  using Word = typename math::FloatLayout<T>::Bits;
  constexpr int kTop = sizeof(Word) * 8 - 1;
  const V angle = eighth_turn<V>(y), z = angle * angle;
  const V sine = angle + angle * z * polynomial(z, C::kSin);
  const V cosine = (V(T(1)) - V(T(0.5)) * z) + z * z * polynomial(z, C::kCos);
  const V length = sqrt(squared_radius<V>(sizeof(T) == sizeof(float) ? x : x >> 11));
  const V radius = from_bits_of<V>(to_bits(length) | (y & B(Word{1} << kTop)));
  const auto exchanged = (y & B(Word{1} << (kTop - 1))) != B(Word{0});
  return {radius * select(exchanged, sine, cosine), radius * select(exchanged, cosine, sine)};
}

#undef TREADLE_RANDOM_MATHS

}  // namespace treadle::kernels::random_maths
