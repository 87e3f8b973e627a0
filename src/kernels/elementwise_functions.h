#pragma once
// The definition of every elementwise operation: one struct each, named as in elementwise_ops.h.
//
//   eval(V...)            over the value types of elementwise_math.h; returns V, or a mask where the result is bool
//   eval(V, Params<V>)    where the operation has parameters
//   integer(T, T, error)  on scalars, for integer types, where eval doesn't serve them
//   kByLane               eval calls the C library lane by lane (each_lane)
//   kCallsLibrary         eval does so for some lanes
//   kFormulaOfFloat32     eval does so unless lanes are float32
//   first(V), second(made, x)  where eval(x) is second(first(x), x): long chains of operations, which rows do in two
//                         passes, each short enough that a processor works on several vectors at a time

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/elementwise_math.h"
#include "kernels/elementwise_ops.h"
#include "kernels/error.h"

namespace treadle::kernels {

// Whether compute type T has operations of the domain.
template <class T, OpDomain kDomain>
constexpr bool in_domain() {
  constexpr bool kIsBool = std::is_same_v<T, uint8_t>;  // bools are bytes
  switch (kDomain) {
    case OpDomain::kFloat:
      return std::is_floating_point_v<T>;
    case OpDomain::kNumber:
      return !kIsBool;
    case OpDomain::kInteger:
      return std::is_integral_v<T> && !kIsBool;
    case OpDomain::kBool:
      return kIsBool;
    case OpDomain::kAny:
      return true;
  }
  return false;
}

}  // namespace treadle::kernels

namespace treadle::kernels::functions {

template <class V>
struct Params {
  V alpha;
  V beta;
};

template <class V>
inline constexpr bool kIsFloat32 = std::is_same_v<typename V::Scalar, float>;

template <class V>
TREADLE_INLINE V zero() {
  return V(typename V::Scalar(0));
}
template <class V>
TREADLE_INLINE V one() {
  return V(typename V::Scalar(1));
}
template <class V>
TREADLE_INLINE V wrapping_neg(V x) {
  return from_bits_of<V>(typename V::Bits(0) - to_bits(x));
}

// --- one input ---

struct Abs {
  template <class V>
  TREADLE_INLINE V eval(V x) {
    if constexpr (std::is_floating_point_v<typename V::Scalar>) {
      return math::absolute(x);
    } else {
      return select(x < zero<V>(), wrapping_neg(x), x);
    }
  }
};
struct Neg {
  template <class V>
  TREADLE_INLINE V eval(V x) {
    if constexpr (std::is_floating_point_v<typename V::Scalar>) {
      return -x;
    } else {
      return wrapping_neg(x);
    }
  }
};
struct Sign {
  template <class V>
  TREADLE_INLINE V eval(V x) {
    return select(x > zero<V>(), one<V>(), select(x < zero<V>(), V(static_cast<typename V::Scalar>(-1)), x));
  }
};
struct Relu {
  template <class V>
  TREADLE_INLINE V eval(V x) {
    return select(x < zero<V>(), zero<V>(), x);
  }
};

#define TREADLE_UNARY(name, expression) \
  struct name {                         \
    template <class V>                  \
    TREADLE_INLINE V eval(V x) {        \
      return expression;                \
    }                                   \
  };
#define TREADLE_UNARY_BY_LANE(name, function)                                          \
  struct name {                                                                        \
    static constexpr bool kByLane = true;                                              \
    template <class V>                                                                 \
    TREADLE_INLINE V eval(V x) {                                                       \
      return each_lane(x, [](auto lane) -> decltype(lane) { return function(lane); }); \
    }                                                                                  \
  };
// float32 has a formula; other types call the C library.
#define TREADLE_UNARY_OF_FLOAT32(name, expression, function)                             \
  struct name {                                                                          \
    static constexpr bool kFormulaOfFloat32 = true;                                      \
    template <class V>                                                                   \
    TREADLE_INLINE V eval(V x) {                                                         \
      if constexpr (kIsFloat32<V>) {                                                     \
        return expression;                                                               \
      } else {                                                                           \
        return each_lane(x, [](auto lane) -> decltype(lane) { return function(lane); }); \
      }                                                                                  \
    }                                                                                    \
  };
#define TREADLE_UNARY_WITH_PARAMS(name, expression)            \
  struct name {                                                \
    template <class V>                                         \
    TREADLE_INLINE V eval(V x, [[maybe_unused]] Params<V> p) { \
      return expression;                                       \
    }                                                          \
  };

TREADLE_UNARY(Ceil, ceil(x))
TREADLE_UNARY(Floor, floor(x))
TREADLE_UNARY(Round, round_even(x))
TREADLE_UNARY(Sqrt, sqrt(x))
TREADLE_UNARY(Reciprocal, one<V>() / x)
TREADLE_UNARY(Exp, math::exp(x))
TREADLE_UNARY(Log, math::log(x))
TREADLE_UNARY_OF_FLOAT32(Asin, math::asin_float(x), std::asin)
TREADLE_UNARY_OF_FLOAT32(Acos, math::acos_float(x), std::acos)
TREADLE_UNARY_OF_FLOAT32(Atan, math::atan_float(x), std::atan)
TREADLE_UNARY_OF_FLOAT32(Sinh, math::sinh_float(x), std::sinh)
TREADLE_UNARY_OF_FLOAT32(Cosh, math::cosh_float(x), std::cosh)
TREADLE_UNARY_BY_LANE(Asinh, std::asinh)
TREADLE_UNARY_BY_LANE(Acosh, std::acosh)
TREADLE_UNARY_BY_LANE(Atanh, std::atanh)
TREADLE_UNARY(Tanh, math::tanh(x))
TREADLE_UNARY(Sigmoid, math::sigmoid(x))
TREADLE_UNARY(Softplus, math::softplus(x))
TREADLE_UNARY(Softsign, x / (one<V>() + math::absolute(x)))

struct Sin {
  static constexpr bool kCallsLibrary = true;
  template <class V>
  TREADLE_INLINE V eval(V x) {
    if constexpr (kIsFloat32<V>) {
      const V y = select(x == zero<V>(), x, math::sin_float(x, 0));  // keeps the sign of zero
      const auto far = !(math::absolute(x) <= V(math::Coefficients<float>::kTurnLimit));
      if (!any(far)) [[likely]]
        return select(x == zero<V>(), x, y);
      return select(far, each_lane(x, [](float lane) { return std::sin(lane); }), y);
    } else {
      return each_lane(x, [](auto lane) { return std::sin(lane); });
    }
  }
};
struct Cos {
  static constexpr bool kCallsLibrary = true;
  template <class V>
  TREADLE_INLINE V eval(V x) {
    if constexpr (kIsFloat32<V>) {
      const V y = math::sin_float(x, 1);
      const auto far = !(math::absolute(x) <= V(math::Coefficients<float>::kTurnLimit));
      if (!any(far)) [[likely]]
        return y;
      return select(far, each_lane(x, [](float lane) { return std::cos(lane); }), y);
    } else {
      return each_lane(x, [](auto lane) { return std::cos(lane); });
    }
  }
};
struct Tan {
  static constexpr bool kCallsLibrary = true;
  template <class V>
  TREADLE_INLINE V eval(V x) {
    if constexpr (kIsFloat32<V>) {
      const V y = select(x == zero<V>(), x, math::tan_float(x));  // keeps the sign of zero
      const auto far = !(math::absolute(x) <= V(math::Coefficients<float>::kTanLimit));
      if (!any(far)) [[likely]]
        return y;
      return select(far, each_lane(x, [](float lane) { return std::tan(lane); }), y);
    } else {
      return each_lane(x, [](auto lane) { return std::tan(lane); });
    }
  }
};
struct Erf {
  static constexpr bool kFormulaOfFloat32 = true;
  template <class V>
  TREADLE_INLINE V eval(V x) {
    if constexpr (kIsFloat32<V>) {
      return second(first(x), x);
    } else {
      return each_lane(x, [](auto lane) { return std::erf(lane); });
    }
  }
  template <class V>
    requires kIsFloat32<V>
  TREADLE_INLINE V first(V x) {
    return math::erf_exponent(x);
  }
  template <class V>
    requires kIsFloat32<V>
  TREADLE_INLINE V second(V exponent, V x) {
    return math::erf_of_exponent(exponent, x);
  }
};
// x tanh(softplus(x)); with e = exp(x), tanh(ln(1 + e)) = e(e + 2) / (e(e + 2) + 2).
struct Mish {
  template <class V>
  TREADLE_INLINE V eval(V x) {
    const V limit(static_cast<typename V::Scalar>(30));  // beyond, tanh is 1
    const V e = math::exp(math::at_most(x, limit));
    const V t = e * (e + V(typename V::Scalar(2)));
    return select(x > limit, x, x * (t / (t + V(typename V::Scalar(2)))));
  }
};
// x / 2 (1 + erf(x / sqrt 2))
struct GeluErf {
  static constexpr bool kFormulaOfFloat32 = true;
  template <class V>
  TREADLE_INLINE V eval(V x) {
    if constexpr (kIsFloat32<V>) {
      return second(first(x), x);
    } else {
      return weighted(Erf::eval(scaled(x)), x);
    }
  }
  template <class V>
    requires kIsFloat32<V>
  TREADLE_INLINE V first(V x) {
    return Erf::first(scaled(x));
  }
  template <class V>
    requires kIsFloat32<V>
  TREADLE_INLINE V second(V exponent, V x) {
    return weighted(Erf::second(exponent, x), x);  // only the sign of x is used
  }

 private:
  template <class V>
  TREADLE_INLINE V scaled(V x) {
    return x * V(static_cast<typename V::Scalar>(0.70710678118654752440));
  }
  template <class V>
  TREADLE_INLINE V weighted(V erf, V x) {
    return V(static_cast<typename V::Scalar>(0.5)) * x * (one<V>() + erf);
  }
};
struct GeluTanh {
  template <class V>
  TREADLE_INLINE V eval(V x) {
    return second(first(x), x);
  }
  template <class V>
  TREADLE_INLINE V first(V x) {
    const V cubic(static_cast<typename V::Scalar>(0.044715));
    const V root(static_cast<typename V::Scalar>(0.79788456080286535588));  // sqrt(2/pi)
    return root * (x + cubic * (x * x * x));
  }
  template <class V>
  TREADLE_INLINE V second(V inner, V x) {
    const V half(static_cast<typename V::Scalar>(0.5));
    return half * x * (one<V>() + math::tanh(inner));
  }
};

TREADLE_UNARY_WITH_PARAMS(LeakyRelu, select(x < zero<V>(), p.alpha* x, x))
TREADLE_UNARY_WITH_PARAMS(Elu, select(x > zero<V>(), x, p.alpha* math::expm1_nonpositive(math::at_most(x, zero<V>()))))
TREADLE_UNARY_WITH_PARAMS(Selu, p.beta* select(x > zero<V>(), x,
                                               p.alpha* math::expm1_nonpositive(math::at_most(x, zero<V>()))))
TREADLE_UNARY_WITH_PARAMS(HardSigmoid, math::at_most(math::at_least(p.alpha* x + p.beta, zero<V>()), one<V>()))
TREADLE_UNARY_WITH_PARAMS(ThresholdedRelu, select(x <= p.alpha, zero<V>(), x))
TREADLE_UNARY_WITH_PARAMS(ThresholdedReluEqual, select(x < p.alpha, zero<V>(), x))
TREADLE_UNARY_WITH_PARAMS(Swish, x* math::sigmoid(p.alpha* x))
TREADLE_UNARY_WITH_PARAMS(Affine, p.alpha* x + p.beta)
TREADLE_UNARY_WITH_PARAMS(ScaledTanh, p.alpha* math::tanh(p.beta* x))

// max(0, x) + min(0, alpha (exp(x/alpha) - 1)), for either sign of alpha.
struct Celu {
  template <class V>
  TREADLE_INLINE V eval(V x, Params<V> p) {
    const V scaled = x / p.alpha;
    const V shrunk = select(scaled > zero<V>(), math::exp(scaled) - one<V>(),
                            math::expm1_nonpositive(math::at_most(scaled, zero<V>())));
    return Relu::eval(x) + math::at_most(p.alpha * shrunk, zero<V>());
  }
};
// alpha and beta fixed at 1/6 and 1/2, in the element type.
struct HardSwish {
  template <class V>
  TREADLE_INLINE V eval(V x) {
    using T = typename V::Scalar;
    return x * HardSigmoid::eval(x, Params<V>{V(static_cast<T>(1.0 / 6)), V(static_cast<T>(0.5))});
  }
};
struct Shrink {
  template <class V>
  TREADLE_INLINE V eval(V x, Params<V> p) {
    return select(x < -p.alpha, x + p.beta, select(x > p.alpha, x - p.beta, zero<V>()));
  }
  // Computed in double, so that fractions of the parameters count. The result is truncated.
  template <class T>
  TREADLE_INLINE T integer(T x, double lambd, double bias) {
    const double value = static_cast<double>(x);
    if (value < -lambd) return from_double<T>(value + bias);
    if (value > lambd) return from_double<T>(value - bias);
    return 0;
  }

 private:
  template <class T>
  TREADLE_INLINE T from_double(double value) {
    constexpr double kLow = static_cast<double>(std::numeric_limits<T>::min());
    constexpr double kHigh = static_cast<double>(std::numeric_limits<T>::max() / 2 + 1) * 2;
    return value > kLow - 1 && value >= kLow && value < kHigh ? static_cast<T>(value) : std::numeric_limits<T>::min();
  }
};
struct IsNaN {
  template <class V>
  TREADLE_INLINE auto eval(V x) {
    return x != x;
  }
};
struct IsInf {
  template <class V>
  TREADLE_INLINE auto eval(V x, Params<V> p) {
    const auto negative = (x == V(-math::kInfinity<V>)) & (p.alpha != zero<V>());
    const auto positive = (x == V(math::kInfinity<V>)) & (p.beta != zero<V>());
    return negative | positive;
  }
};
struct Not {
  template <class V>
  TREADLE_INLINE V eval(V x) {
    return x ^ one<V>();
  }
};
TREADLE_UNARY(BitwiseNot, ~x)

// --- two inputs ---

// Keeps a selection a separate instruction. A value type whose compiler would merge the selection with the one around
// it has an overload of its own.
template <class V>
TREADLE_INLINE V picked(V v) {
  return v;
}

#define TREADLE_BINARY(name, expression) \
  struct name {                          \
    template <class V>                   \
    TREADLE_INLINE auto eval(V a, V b) { \
      return expression;                 \
    }                                    \
  };

TREADLE_BINARY(Add, a + b)
TREADLE_BINARY(Sub, a - b)
TREADLE_BINARY(Mul, a* b)
// If the operands are equal, the result is the first. In a chain of these operations the first operand is the
// loop-carried one, so the test for NaN is made on the second, which is ready earlier.
TREADLE_BINARY(Min, select(b != b, b, picked(select(b < a, b, a))))
TREADLE_BINARY(Max, select(b != b, b, picked(select(b > a, b, a))))
TREADLE_BINARY(PRelu, select(a < zero<V>(), b* a, a))
TREADLE_BINARY(Equal, a == b)
TREADLE_BINARY(Less, a < b)
TREADLE_BINARY(Greater, a > b)
TREADLE_BINARY(LessOrEqual, a <= b)
TREADLE_BINARY(GreaterOrEqual, a >= b)
TREADLE_BINARY(And, a& b)
TREADLE_BINARY(Or, a | b)
TREADLE_BINARY(Xor, a ^ b)
TREADLE_BINARY(BitwiseAnd, a& b)
TREADLE_BINARY(BitwiseOr, a | b)
TREADLE_BINARY(BitwiseXor, a ^ b)

struct Div {
  template <class V>
  TREADLE_INLINE V eval(V a, V b) {
    return a / b;
  }
  template <class T>
  TREADLE_INLINE T integer(T a, T b, uint32_t& error) {
    if (b == 0) [[unlikely]] {
      error = kDivisionByZero;
      return 0;
    }
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return static_cast<T>(std::make_unsigned_t<T>(0) - static_cast<std::make_unsigned_t<T>>(a));
    }
    return a / b;
  }
};
struct Fmod {
  static constexpr bool kByLane = true;
  template <class V>
  TREADLE_INLINE V eval(V a, V b) {
    return each_lane(a, b, [](auto x, auto y) { return std::fmod(x, y); });
  }
  template <class T>
  TREADLE_INLINE T integer(T a, T b, uint32_t& error) {
    if (b == 0) [[unlikely]] {
      error = kDivisionByZero;
      return 0;
    }
    if constexpr (std::is_signed_v<T>) {
      if (b == -1) return 0;
    }
    return a % b;
  }
};
struct Mod {
  static constexpr bool kByLane = true;
  template <class V>
  TREADLE_INLINE V eval(V a, V b) {
    return each_lane(a, b, [](auto x, auto y) {
      const auto rest = std::fmod(x, y);
      if (rest == 0) return std::copysign(rest, y);
      return (rest < 0) == (y < 0) ? rest : rest + y;
    });
  }
  template <class T>
  TREADLE_INLINE T integer(T a, T b, uint32_t& error) {
    const T rest = Fmod::integer(a, b, error);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  }
};
// Frequent exponents become a few multiplications, a root or a fraction. A scalar lane and a vector compute them alike.
struct Pow {
  static constexpr bool kCallsLibrary = true;
  template <class V>
  TREADLE_INLINE V eval(V a, V b) {
    using T = typename V::Scalar;
    const auto all = [b](double exponent) { return !any(b != V(static_cast<T>(exponent))); };
    if (all(2)) return a * a;
    if (all(3)) return a * a * a;
    if (all(-1)) return one<V>() / a;
    if (all(0.5) && !any(!(a >= zero<V>()))) return sqrt(a + zero<V>());
    if (all(-0.5) && !any(!(a >= zero<V>()))) return one<V>() / sqrt(a + zero<V>());
    return each_lane(a, b, [](auto x, auto y) { return of_lane(x, y); });
  }
  template <class T>
  TREADLE_INLINE T integer(T base, T exponent, uint32_t&) {
    using U = std::make_unsigned_t<T>;
    if constexpr (std::is_signed_v<T>) {
      if (exponent < 0) {
        if (base == 1) return 1;
        return base == -1 ? static_cast<T>(exponent & 1 ? -1 : 1) : T(0);
      }
    }
    U power = 1;
    U square = static_cast<U>(base);
    for (U rest = static_cast<U>(exponent); rest != 0; rest >>= 1) {
      if (rest & 1) power *= square;
      square *= square;
    }
    return static_cast<T>(power);
  }

 private:
  template <class T>
  TREADLE_INLINE T of_lane(T x, T y) {
    if (y == 2) return x * x;
    if (y == 3) return x * x * x;
    if (y == -1) return 1 / x;
    if (y == T(0.5) && x >= 0) return std::sqrt(x + 0);  // x + 0 turns -0 into 0
    if (y == T(-0.5) && x >= 0) return 1 / std::sqrt(x + 0);
    return std::pow(x, y);
  }
};
struct ShiftLeft {
  template <class T>
  TREADLE_INLINE T integer(T a, T b, uint32_t&) {
    using U = std::make_unsigned_t<T>;
    return static_cast<U>(b) < sizeof(T) * 8 ? static_cast<T>(static_cast<U>(a) << static_cast<U>(b)) : T(0);
  }
};
struct ShiftRight {
  template <class T>
  TREADLE_INLINE T integer(T a, T b, uint32_t&) {
    using U = std::make_unsigned_t<T>;
    const T fill = a < T(0) ? static_cast<T>(-1) : T(0);
    return static_cast<U>(b) < sizeof(T) * 8 ? static_cast<T>(a >> b) : fill;
  }
};

// --- three inputs ---

struct Clip {
  template <class V>
  TREADLE_INLINE V eval(V x, V low, V high) {
    return math::at_most(math::at_least(x, low), high);
  }
};
struct Where {};  // moves elements by width; see the rows

#undef TREADLE_UNARY
#undef TREADLE_UNARY_BY_LANE
#undef TREADLE_UNARY_OF_FLOAT32
#undef TREADLE_UNARY_WITH_PARAMS
#undef TREADLE_BINARY

}  // namespace treadle::kernels::functions
