#pragma once
// The maths of elementwise operations, written once over a value type V. The rows instantiate it for scalars and
// vectors (isa/vector.h), native code for values that write LLVM IR. All get the same operations in the same order.
//
// V has
//   V::Scalar (float or double), V::Bits (unsigned lanes of the same width), explicit V(Scalar)
//   + - * / unary -; < > <= >= == != giving a mask; masks have & | !
//   select(mask, V, V), multiply_add(V, V, V), floor, ceil, round_even, sqrt (found by argument-dependent lookup)
//   to_bits(V), from_bits_of<V>(Bits); Bits has + - & | ^ << >>, explicit Bits(integer)
//
// The coefficients are minimax fits by Remez' algorithm; relative errors stay under 2 units in the last place.

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <type_traits>

namespace treadle::kernels::math {

template <class T>
struct FloatLayout;
template <>
struct FloatLayout<float> {
  using Bits = uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  static constexpr float kRoundingMagic = 0x1.8p23f;  // x + magic has the integer nearest to x in its low bits
};
template <>
struct FloatLayout<double> {
  using Bits = uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr double kRoundingMagic = 0x1.8p52;
};

template <class T>
struct Coefficients;

template <>
struct Coefficients<float> {
  // e^x underflows to 0 at the lower bound and overflows at the upper one.
  static constexpr float kExpLow = -104.0f, kExpHigh = 89.0f;
  static constexpr float kNearExpLow = -87.0f;  // e^-x is finite from here on
  static constexpr float kBesideOne = 20.0f;    // 1 + e^-x is 1 from here on
  static constexpr int kSmallOne = 24;          // 2^-24 + e^x 2^-24 neither underflows nor overflows up to e^104
  // ln 2 in two parts, the first short enough for exact multiples.
  static constexpr float kLn2High = 0x1.63p-1f, kLn2Low = -2.12194440e-4f, kLn2 = 0x1.62e430p-1f;
  // (e^r - 1 - r) / r^2 for |r| <= ln(2)/2
  static constexpr float kExp[] = {0.4999999816f, 0.1666654367f, 0.04166719965f, 0.00836651394f, 0.001388252279f};
  // ln((1+s)/(1-s)) = 2s + s^3 P(s^2) for |s| <= 3 - 2 sqrt(2)
  static constexpr float kLog[] = {0.6666666558f, 0.4000035255f, 0.2853607785f, 0.2360748023f};
  static constexpr float kSubnormalScale = 0x1p25f;
  static constexpr int kSubnormalShift = 25;
  // ln(erfc(x)) = -x - x P(x) for 0 <= x <= 4
  static constexpr float kErf[] = {0.128379172f,     0.636619382f,     0.1027778305f,
                                   -0.0191530639f,   -0.000160396052f, 0.001667027437f,
                                   -0.000632836838f, 0.0001176412656f, -9.256264425e-06f};
  // pi/2 in three parts, the first two short enough for exact multiples up to kTurnLimit
  static constexpr float kHalfPi[] = {0x1.92p0f, 0x1.fb4p-12f, 7.54978995489188e-8f};
  static constexpr float kTurnLimit = 8192.0f;
  static constexpr float kHalfPiRest = -1.715124451e-15f;  // pi/2 minus the parts; tan needs it near poles
  static constexpr float kTanLimit = 512.0f;
  // (sin(r)/r - 1)/r^2 and (cos(r) - 1 + r^2/2)/r^4 over r^2, for |r| <= pi/4
  static constexpr float kSin[] = {-0.1666666664f, 0.008333329382f, -0.0001983933206f, 2.718276016e-6f};
  static constexpr float kCos[] = {0.041666647f, -0.001388737184f, 2.443875942e-5f};
  // (f(r)/r - 1)/r^2 over r^2: tan for |r| <= pi/4, atan and sinh for |r| <= 1, asin for |r| <= 1/2
  static constexpr float kTan[] = {0.3333334923f,  0.1333265901f,    0.05406049266f, 0.02127911709f,
                                   0.01084400713f, 7.885703963e-05f, 0.004381681792f};
  static constexpr float kAtan[] = {-0.3333329856f, 0.1999854892f,  -0.1426424235f, 0.1095218584f,   -0.08403450251f,
                                    0.0579575859f,  -0.0311778374f, 0.01091460139f, -0.001793620526f};
  static constexpr float kAsin[] = {0.1666675359f, 0.07495241612f, 0.04547709972f, 0.02414759062f, 0.04221858829f};
  static constexpr float kSinh[] = {0.1666666716f, 0.0083333496f, 0.0001983615948f, 2.816951337e-06f};
  // pi/2 rounded, and its rounding error
  static constexpr float kRightAngle = 0x1.921fb6p0f, kRightAngleRest = -0x1.777a5cp-25f;
};

template <>
struct Coefficients<double> {
  static constexpr double kExpLow = -746.0, kExpHigh = 710.0;
  static constexpr double kNearExpLow = -700.0;
  static constexpr double kBesideOne = 40.0;
  static constexpr int kSmallOne = 64;
  static constexpr double kLn2High = 0x1.62e42fee00000p-1, kLn2Low = 0x1.a39ef35793c76p-33, kLn2 = 0x1.62e42fefa39efp-1;
  static constexpr double kExp[] = {0.5,
                                    0.166666666666666766,
                                    0.0416666666666667015,
                                    0.00833333333332156329,
                                    0.00138888888888667328,
                                    0.000198412698863284464,
                                    0.0000248015873607897443,
                                    2.75572439787975263e-6,
                                    2.75572425450323616e-7,
                                    2.51091256274055237e-8,
                                    2.09245130152161279e-9};
  static constexpr double kLog[] = {0.666666666666673993, 0.399999999993639249, 0.285714287560157938,
                                    0.222221969786396291, 0.181836559299464722, 0.153115097486869473,
                                    0.148231456385636937};
  static constexpr double kSubnormalScale = 0x1p54;
  static constexpr int kSubnormalShift = 54;
  static constexpr double kSin[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,
                                    -1.98412698298579493134e-04, 2.75573137070700676789e-06,
                                    -2.50507602534068634195e-08, 1.58969099521155010221e-10};
  static constexpr double kCos[] = {4.16666666666666019037e-02, -1.38888888888741095749e-03,
                                    2.48015872894767294178e-05, -2.75573143513906633035e-07,
                                    2.08757232129817482790e-09, -1.13596475577881948265e-11};
};

template <class V>
using ScalarOf = typename V::Scalar;
template <class V>
inline constexpr ScalarOf<V> kInfinity = std::numeric_limits<ScalarOf<V>>::infinity();
template <class V>
inline constexpr ScalarOf<V> kNan = std::numeric_limits<ScalarOf<V>>::quiet_NaN();

#define TREADLE_INLINE [[gnu::always_inline]] static inline

template <class V, size_t kCount>
TREADLE_INLINE V polynomial(V x, const ScalarOf<V> (&coefficients)[kCount]) {
  V sum(coefficients[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = multiply_add(sum, x, V(coefficients[i]));
  return sum;
}

template <class V>
TREADLE_INLINE auto sign_bit() {
  using Bits = typename FloatLayout<ScalarOf<V>>::Bits;
  return typename V::Bits(Bits{1} << (sizeof(Bits) * 8 - 1));
}

template <class V>
TREADLE_INLINE V absolute(V x) {
  return from_bits_of<V>(to_bits(x) & ~sign_bit<V>());
}

// `magnitude` is not negative.
template <class V>
TREADLE_INLINE V with_sign(V magnitude, V sign) {
  return from_bits_of<V>(to_bits(magnitude) | (to_bits(sign) & sign_bit<V>()));
}

// A NaN in x stays.
template <class V>
TREADLE_INLINE V at_least(V x, V low) {
  return select(x < low, low, x);
}
template <class V>
TREADLE_INLINE V at_most(V x, V high) {
  return select(x > high, high, x);
}

// x = n ln 2 + r; n as the bits of a float around the rounding magic.
template <class V>
struct Reduced {
  V r;
  typename V::Bits n;
};
template <class V>
TREADLE_INLINE Reduced<V> reduce_by_ln2(V x) {
  using C = Coefficients<ScalarOf<V>>;
  const V magic(FloatLayout<ScalarOf<V>>::kRoundingMagic);
  const V shifted = multiply_add(x, V(ScalarOf<V>(1.4426950408889634074)), magic);
  const V n = shifted - magic;
  V r = multiply_add(n, V(-C::kLn2High), x);
  r = multiply_add(n, V(-C::kLn2Low), r);
  return {r, to_bits(shifted) - to_bits(magic)};
}

// 2^n for n in the range of normal exponents.
template <class V>
TREADLE_INLINE V power_of_two(typename V::Bits n) {
  using L = FloatLayout<ScalarOf<V>>;
  return from_bits_of<V>((n + typename V::Bits(L::kBias)) << L::kMantissaBits);
}

template <class V>
TREADLE_INLINE V exp_minus_one_reduced(V r) {
  return multiply_add(polynomial(r, Coefficients<ScalarOf<V>>::kExp), r * r, r);
}

// e^x / 2^halvings, for 0 or 1 of them.
template <int kHalvings, class V>
TREADLE_INLINE V exp_shared(V x) {
  using C = Coefficients<ScalarOf<V>>;
  x = at_most(at_least(x, V(C::kExpLow)), V(C::kExpHigh + kHalvings));
  const auto [r, whole] = reduce_by_ln2(x);
  const auto n = whole - typename V::Bits(kHalvings);
  const V p = V(1) + exp_minus_one_reduced(r);
  // 2^n is multiplied in two factors, since n exceeds the normal exponents; the first product is exact. `half` is n / 2
  // rounded down. n is a two's complement number, so an offset makes it positive before the shift.
  using B = typename V::Bits;
  const B half = ((n + B(4096)) >> 1) - B(2048);
  return p * power_of_two<V>(half) * power_of_two<V>(n - half);
}
template <class V>
TREADLE_INLINE V exp(V x) {
  return exp_shared<0>(x);
}

// Coefficients of (e^-2r - 1 + 2r) / (2 r^2): those of (e^x - 1 - x) / x^2 times powers of two, so they are exact.
template <class T>
struct Halves {
  T exp[std::size(Coefficients<T>::kExp)];
  constexpr Halves() : exp() {
    T power = 2;
    for (size_t i = 0; i < std::size(exp); ++i, power *= -2) exp[i] = power * Coefficients<T>::kExp[i];
  }
};
template <class T>
inline constexpr Halves<T> kHalves;

// e^x = scale (1 + e^r - 1). 2^(n + shift) must be a normal number; then the bits of the rounding magic give `scale`
// directly. `kExact`: n ln 2 is subtracted in two parts; not needed if e^x is added to 1.
template <class V>
struct Scaled {
  V scale, tail;  // tail: e^r - 1
};
template <bool kExact, class V>
TREADLE_INLINE Scaled<V> exp_in_range(V x, int shift = 0) {
  using T = ScalarOf<V>;
  using C = Coefficients<T>;
  using L = FloatLayout<T>;
  const V magic(L::kRoundingMagic + static_cast<T>(static_cast<int>(L::kBias) + shift));
  const V shifted = multiply_add(x, V(T(1.4426950408889634074)), magic);
  const V n = shifted - magic;
  V r = multiply_add(n, V(kExact ? -C::kLn2High : -C::kLn2), x);
  if constexpr (kExact) r = multiply_add(n, V(-C::kLn2Low), r);
  return {from_bits_of<V>(to_bits(shifted) << L::kMantissaBits), exp_minus_one_reduced(r)};
}

// Coefficients of (e^-x - 1 + x) / x^2: those of (e^x - 1 - x) / x^2 with other signs, so they are exact.
template <class T>
struct Mirrored {
  T exp[std::size(Coefficients<T>::kExp)];
  constexpr Mirrored() : exp() {
    T sign = 1;
    for (size_t i = 0; i < std::size(exp); ++i, sign = -sign) exp[i] = sign * Coefficients<T>::kExp[i];
  }
};
template <class T>
inline constexpr Mirrored<T> kMirrored;

// 2^shift (1 + e^-x). e^-x 2^shift must be a normal number; `kExact` as above. x itself is never negated, so that a
// caller's limits of x stay single minimum and maximum instructions.
template <bool kExact, class V>
TREADLE_INLINE V one_plus_exp_minus(V x, int shift = 0) {
  using T = ScalarOf<V>;
  using C = Coefficients<T>;
  using L = FloatLayout<T>;
  using Bits = typename L::Bits;
  const V magic(L::kRoundingMagic + static_cast<T>(static_cast<int>(L::kBias) + shift));
  const V shifted = multiply_add(x, V(T(-1.4426950408889634074)), magic);
  const V n = shifted - magic;
  V r = multiply_add(n, V(kExact ? C::kLn2High : C::kLn2), x);  // -x = n ln 2 - r
  if constexpr (kExact) r = multiply_add(n, V(C::kLn2Low), r);
  const V scale = from_bits_of<V>(to_bits(shifted) << L::kMantissaBits);
  const V tail = multiply_add(polynomial(r, kMirrored<T>.exp), r * r, -r);
  const V one = power_of_two<V>(typename V::Bits(static_cast<Bits>(shift)));
  return multiply_add(tail, scale, scale + one);
}

// e^x - 1 for x <= 0.
template <class V>
TREADLE_INLINE V expm1_nonpositive(V x) {
  const auto [scale, tail] = exp_in_range<false>(at_least(x, V(-Coefficients<ScalarOf<V>>::kBesideOne)));
  return multiply_add(scale, tail, scale - V(1));
}

// 1 - e^x for x <= 0 where e^x is a normal number.
template <class V>
TREADLE_INLINE V one_minus_exp(V x) {
  const auto [scale, tail] = exp_in_range<false>(x);
  return multiply_add(-scale, tail, V(1) - scale);
}

template <class V>
TREADLE_INLINE V log(V x) {
  using T = ScalarOf<V>;
  using C = Coefficients<T>;
  using L = FloatLayout<T>;
  using B = typename V::Bits;
  using Bits = typename L::Bits;
  const auto subnormal = x < V(std::numeric_limits<T>::min());
  const B bits = to_bits(select(subnormal, x * V(C::kSubnormalScale), x));
  // x = m 2^e with m in [sqrt(1/2), sqrt(2)); e comes biased, and becomes a float through the rounding magic.
  constexpr Bits kRootHalf = sizeof(T) == 4 ? Bits(0x3f3504f3u) : Bits(0x3fe6a09e667f3bcdull);
  constexpr Bits kOne = L::kBias << L::kMantissaBits;
  const B biased = (bits + B(kOne - kRootHalf)) >> L::kMantissaBits;
  const V m = from_bits_of<V>(bits - (biased << L::kMantissaBits) + B(kOne));
  const V magic(L::kRoundingMagic);
  const V offset = select(subnormal, V(T(L::kBias + C::kSubnormalShift)), V(T(L::kBias)));
  const V e = from_bits_of<V>(to_bits(magic) + biased) - magic - offset;

  const V f = m - V(1);
  const V s = f / (V(2) + f);
  const V z = s * s;
  const V half_square = V(T(0.5)) * f * f;
  const V tail = s * (half_square + z * polynomial(z, C::kLog));
  V y = multiply_add(e, V(C::kLn2High), f - (half_square - (tail + e * V(C::kLn2Low))));
  y = select(x == V(kInfinity<V>), x, y);
  y = select(x == V(T(0)), V(-kInfinity<V>), y);
  return select(x >= V(T(0)), y, V(kNan<V>));
}

// ln(1 + x) for 0 <= x <= 1: the logarithm of the rounded sum, corrected by the rounding error.
template <class V>
TREADLE_INLINE V log1p_unit(V x) {
  const V sum = V(1) + x;
  return log(sum) + (x - (sum - V(1))) / sum;
}

// 1 / (1 + e^-x). Both sides of the fraction have a factor that keeps e^-x from overflow until the result underflows.
template <class V>
TREADLE_INLINE V sigmoid(V x) {
  using T = ScalarOf<V>;
  using C = Coefficients<T>;
  using Bits = typename FloatLayout<T>::Bits;
  const V one = power_of_two<V>(typename V::Bits(static_cast<Bits>(-C::kSmallOne)));
  const V y = at_most(at_least(x, V(C::kExpLow)), V(C::kBesideOne));
  return one / one_plus_exp_minus<true>(y, -C::kSmallOne);
}

// 1 + e^-x as a divisor. x is limited so that the divisor is never infinite; where it would be, its inverse is as good
// as 0.
template <class V>
TREADLE_INLINE V sigmoid_divisor(V x) {
  using C = Coefficients<ScalarOf<V>>;
  return one_plus_exp_minus<false>(at_most(at_least(x, V(C::kNearExpLow)), V(C::kBesideOne)));
}

// tanh(a) for a = |x| as t / (1 - t), with t = (1 - e^-2a) / 2. With halves, a need not be doubled.
template <class V>
struct Fraction {
  V top, bottom;  // top has the sign; bottom is within [1/2, 1]
};
template <class V>
TREADLE_INLINE Fraction<V> tanh_fraction(V x) {
  using T = ScalarOf<V>;
  using C = Coefficients<T>;
  using L = FloatLayout<T>;
  const V a = at_most(absolute(x), V(C::kBesideOne / 2));
  const V magic(L::kRoundingMagic + static_cast<T>(L::kBias));
  const V shifted = multiply_add(a, V(T(-2 * 1.4426950408889634074)), magic);
  const V r = multiply_add(shifted - magic, V(C::kLn2 / 2), a);
  const V scale = from_bits_of<V>(to_bits(shifted) << L::kMantissaBits);
  const V tail = multiply_add(-polynomial(r, kHalves<T>.exp), r * r, r);  // (1 - e^-2r) / 2
  const V t = multiply_add(scale, tail, multiply_add(scale, V(T(-0.5)), V(T(0.5))));
  return {with_sign(t, x), V(1) - t};
}
template <class V>
TREADLE_INLINE V tanh(V x) {
  const auto [top, bottom] = tanh_fraction(x);
  return top / bottom;
}

template <class V>
TREADLE_INLINE V softplus(V x) {
  return select(x > V(0), x, V(0)) + log1p_unit(exp(-absolute(x)));
}

// ln(erfc(|x|)), from which erf(x) follows. Float only.
template <class V>
TREADLE_INLINE V erf_exponent(V x) {
  const V a = at_most(absolute(x), V(4));
  return -multiply_add(a, polynomial(a, Coefficients<float>::kErf), a);
}
template <class V>
TREADLE_INLINE V erf_of_exponent(V exponent, V x) {
  return with_sign(one_minus_exp(exponent), x);
}

// x = n pi/2 + r for |x| <= kTurnLimit. The lowest bits of n are the lowest bits of `quadrant`. Float only.
template <class V>
struct ReducedAngle {
  V r, n;
  typename V::Bits quadrant;
};
template <class V>
TREADLE_INLINE ReducedAngle<V> reduce_by_quarter_turns(V x) {
  const V magic(FloatLayout<float>::kRoundingMagic);
  const V shifted = multiply_add(x, V(0.63661977236758134308f), magic);
  const V n = shifted - magic;
  V r = x;
  for (float part : Coefficients<float>::kHalfPi) r = multiply_add(n, V(-part), r);
  return {r, n, to_bits(shifted)};
}

// sin(x + quarter_turns pi/2) for |x| <= kTurnLimit, float only.
template <class V>
TREADLE_INLINE V sin_float(V x, uint32_t quarter_turns) {
  using C = Coefficients<float>;
  using B = typename V::Bits;
  const auto [r, n, turns] = reduce_by_quarter_turns(x);
  const V z = r * r;
  const V sine = multiply_add(r * z, polynomial(z, C::kSin), r);
  const V cosine = multiply_add(z * z, polynomial(z, C::kCos), multiply_add(z, V(-0.5f), V(1)));
  const B quadrant = turns + B(quarter_turns);
  const V y = select((quadrant & B(1)) == B(0), sine, cosine);
  return from_bits_of<V>(to_bits(y) ^ ((quadrant & B(2)) << 30));
}

// r + r^3 P(r^2), where z = r^2.
template <class V, size_t kCount>
TREADLE_INLINE V odd(V r, V z, const float (&coefficients)[kCount]) {
  return multiply_add(r * z, polynomial(z, coefficients), r);
}

// tan(x) for |x| <= kTanLimit, float only.
template <class V>
TREADLE_INLINE V tan_float(V x) {
  using C = Coefficients<float>;
  using B = typename V::Bits;
  const auto [near, n, quadrant] = reduce_by_quarter_turns(x);
  const V r = multiply_add(n, V(-C::kHalfPiRest), near);
  const V t = odd(r, r * r, C::kTan);
  return select((quadrant & B(1)) == B(0), t, V(-1) / t);
}

// pi/2 - y. Float only.
template <class V>
TREADLE_INLINE V complement(V y) {
  using C = Coefficients<float>;
  return (V(C::kRightAngle) - y) + V(C::kRightAngleRest);
}

// Float only.
template <class V>
TREADLE_INLINE V atan_float(V x) {
  const V a = absolute(x);
  const auto steep = a > V(1);
  const V r = select(steep, V(1), a) / select(steep, a, V(1));
  const V y = odd(r, r * r, Coefficients<float>::kAtan);
  return with_sign(select(steep, complement(y), y), x);
}

// The arcsine of |x| up to 1/2; beyond, half of its complement to pi/2. NaN if |x| > 1. Float only.
template <class V>
struct Arc {
  V y;
  decltype(V(0) < V(0)) is_half;
};
template <class V>
TREADLE_INLINE Arc<V> arc(V x) {
  const V a = absolute(x);
  const auto beyond = a > V(0.5f);
  const V z = select(beyond, (V(1) - a) * V(0.5f), a * a);
  return {odd(select(beyond, sqrt(z), a), z, Coefficients<float>::kAsin), beyond};
}
template <class V>
TREADLE_INLINE V asin_float(V x) {
  const auto [y, is_half] = arc(x);
  return with_sign(select(is_half, complement(y + y), y), x);
}
template <class V>
TREADLE_INLINE V acos_float(V x) {
  using C = Coefficients<float>;
  const auto [y, is_half] = arc(x);
  const V twice = y + y;
  const V obtuse = (V(2 * C::kRightAngle) - twice) + V(2 * C::kRightAngleRest);
  return select(is_half, select(x < V(0), obtuse, twice), complement(with_sign(y, x)));
}

// Float only.
template <class V>
TREADLE_INLINE V sinh_float(V x) {
  const V a = absolute(x);
  const V half = exp_shared<1>(a);
  const V far = half - V(0.25f) / half;
  return with_sign(select(a < V(1), odd(a, a * a, Coefficients<float>::kSinh), far), x);
}
template <class V>
TREADLE_INLINE V cosh_float(V x) {
  const V half = exp_shared<1>(absolute(x));
  return half + V(0.25f) / half;
}

}  // namespace treadle::kernels::math
