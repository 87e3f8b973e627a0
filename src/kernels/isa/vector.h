#pragma once
// The values over which elementwise_math.h is written: Vec<T, N> is N lanes of T, Vec<T, 1> a scalar. Both do the same
// IEEE operations, so a lane's result does not depend on the vector's width.
//
// Included by sources in isa/ only, which are compiled once per instruction set.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "kernels/isa/vector_bytes.h"

namespace treadle::kernels {
namespace TREADLE_ISA_NAMESPACE {

template <class T>
inline constexpr int kFullLanes = static_cast<int>(kVectorBytes / sizeof(T));
template <class T>
inline constexpr int kSmallLanes = static_cast<int>(16 / sizeof(T));

#define TREADLE_ALWAYS_INLINE [[gnu::always_inline]] inline

template <class T, int N>
struct NativeVector {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <class T>
struct NativeVector<T, 1> {
  using type = T;
};

template <size_t kBytes>
struct SizedInt;
template <>
struct SizedInt<1> {
  using Signed = int8_t;
  using Unsigned = uint8_t;
};
template <>
struct SizedInt<2> {
  using Signed = int16_t;
  using Unsigned = uint16_t;
};
template <>
struct SizedInt<4> {
  using Signed = int32_t;
  using Unsigned = uint32_t;
};
template <>
struct SizedInt<8> {
  using Signed = int64_t;
  using Unsigned = uint64_t;
};

// The result of comparing N lanes of kBytes bytes: a bool, or all ones in each lane where the comparison holds.
template <size_t kBytes, int N>
struct Mask {
  using Lane = std::conditional_t<N == 1, bool, typename SizedInt<kBytes>::Signed>;
  using Native = typename NativeVector<Lane, N>::type;
  Native v;

  TREADLE_ALWAYS_INLINE friend Mask operator&(Mask a, Mask b) { return {static_cast<Native>(a.v & b.v)}; }
  TREADLE_ALWAYS_INLINE friend Mask operator|(Mask a, Mask b) { return {static_cast<Native>(a.v | b.v)}; }
  TREADLE_ALWAYS_INLINE friend Mask operator!(Mask a) {
    if constexpr (N == 1) {
      return {!a.v};
    } else {
      return {~a.v};
    }
  }
};

template <class T, int N>
struct Vec {
  using Scalar = T;
  using Native = typename NativeVector<T, N>::type;
  using M = Mask<sizeof(T), N>;
  using Bits = Vec<typename SizedInt<sizeof(T)>::Unsigned, N>;
  static constexpr int kLanes = N;
  // Integers are added, subtracted and multiplied as unsigned ones, so that overflow wraps.
  using Wrapping = std::conditional_t<std::is_integral_v<T>,
                                      typename NativeVector<typename SizedInt<sizeof(T)>::Unsigned, N>::type, Native>;
  Native v;

  Vec() = default;
  TREADLE_ALWAYS_INLINE explicit Vec(T scalar) : v(scalar - Native{}) {}  // x - 0 keeps -0.0
  TREADLE_ALWAYS_INLINE static Vec of(Native native) {
    Vec x;
    x.v = native;
    return x;
  }
  TREADLE_ALWAYS_INLINE static Vec load(const T* from) {
    Vec x;
    std::memcpy(&x.v, from, sizeof(x.v));
    return x;
  }
  TREADLE_ALWAYS_INLINE void store(T* to) const { std::memcpy(to, &v, sizeof(v)); }

  TREADLE_ALWAYS_INLINE friend Vec operator+(Vec a, Vec b) { return of((Native)((Wrapping)a.v + (Wrapping)b.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator-(Vec a, Vec b) { return of((Native)((Wrapping)a.v - (Wrapping)b.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator*(Vec a, Vec b) { return of((Native)((Wrapping)a.v * (Wrapping)b.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator/(Vec a, Vec b) { return of(static_cast<Native>(a.v / b.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator-(Vec a) { return of(static_cast<Native>(-a.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator&(Vec a, Vec b) { return of(static_cast<Native>(a.v & b.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator|(Vec a, Vec b) { return of(static_cast<Native>(a.v | b.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator^(Vec a, Vec b) { return of(static_cast<Native>(a.v ^ b.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator~(Vec a) { return of(static_cast<Native>(~a.v)); }
  TREADLE_ALWAYS_INLINE friend Vec operator<<(Vec a, int count) { return of(static_cast<Native>(a.v << count)); }
  TREADLE_ALWAYS_INLINE friend Vec operator>>(Vec a, int count) { return of(static_cast<Native>(a.v >> count)); }
  TREADLE_ALWAYS_INLINE friend M operator<(Vec a, Vec b) { return {(typename M::Native)(a.v < b.v)}; }
  TREADLE_ALWAYS_INLINE friend M operator>(Vec a, Vec b) { return {(typename M::Native)(a.v > b.v)}; }
  TREADLE_ALWAYS_INLINE friend M operator<=(Vec a, Vec b) { return {(typename M::Native)(a.v <= b.v)}; }
  TREADLE_ALWAYS_INLINE friend M operator>=(Vec a, Vec b) { return {(typename M::Native)(a.v >= b.v)}; }
  TREADLE_ALWAYS_INLINE friend M operator==(Vec a, Vec b) { return {(typename M::Native)(a.v == b.v)}; }
  TREADLE_ALWAYS_INLINE friend M operator!=(Vec a, Vec b) { return {(typename M::Native)(a.v != b.v)}; }
};

template <class T, int N>
TREADLE_ALWAYS_INLINE Vec<T, N> select(Mask<sizeof(T), N> condition, Vec<T, N> yes, Vec<T, N> no) {
  return Vec<T, N>::of(condition.v ? yes.v : no.v);
}

template <class T, int N>
TREADLE_ALWAYS_INLINE auto to_bits(Vec<T, N> x) {
  using Bits = typename Vec<T, N>::Bits;
  return Bits::of(__builtin_bit_cast(typename Bits::Native, x.v));
}

template <class T, int N, class B>
TREADLE_ALWAYS_INLINE Vec<T, N> from_bits(Vec<B, N> bits) {
  return Vec<T, N>::of(__builtin_bit_cast(typename Vec<T, N>::Native, bits.v));
}
template <class V, class B>
TREADLE_ALWAYS_INLINE V from_bits_of(B bits) {
  return from_bits<typename V::Scalar, V::kLanes>(bits);
}

template <class To, class T, int N>
TREADLE_ALWAYS_INLINE Vec<To, N> convert_lanes(Vec<T, N> x) {
  if constexpr (N == 1) {
    return Vec<To, N>::of(static_cast<To>(x.v));
  } else {
    return Vec<To, N>::of(__builtin_convertvector(x.v, typename Vec<To, N>::Native));
  }
}

// 1 or 0 per lane.
template <size_t kBytes, int N>
TREADLE_ALWAYS_INLINE Vec<uint8_t, N> to_bool_bytes(Mask<kBytes, N> mask) {
  if constexpr (N == 1) {
    return Vec<uint8_t, 1>::of(mask.v);
  } else {
    return Vec<uint8_t, N>::of(__builtin_convertvector(mask.v, typename Vec<uint8_t, N>::Native) & uint8_t{1});
  }
}

template <class T, int N, class F>
TREADLE_ALWAYS_INLINE Vec<T, N> each_lane(Vec<T, N> x, F function) {
  if constexpr (N == 1) {
    return Vec<T, N>::of(function(x.v));
  } else {
    Vec<T, N> y;
    for (int i = 0; i < N; ++i) y.v[i] = function(x.v[i]);
    return y;
  }
}

template <class T, int N, class F>
TREADLE_ALWAYS_INLINE Vec<T, N> each_lane(Vec<T, N> a, Vec<T, N> b, F function) {
  if constexpr (N == 1) {
    return Vec<T, N>::of(function(a.v, b.v));
  } else {
    Vec<T, N> y;
    for (int i = 0; i < N; ++i) y.v[i] = function(a.v[i], b.v[i]);
    return y;
  }
}

template <size_t kBytes, int N>
TREADLE_ALWAYS_INLINE bool any(Mask<kBytes, N> mask) {
  if constexpr (N == 1) {
    return mask.v;
  } else {
#if defined(__clang__)
    return __builtin_reduce_or(mask.v) != 0;
#else
    bool found = false;
    for (int i = 0; i < N; ++i) found |= mask.v[i] != 0;
    return found;
#endif
  }
}

#if defined(__clang__)
#define TREADLE_LANE_FUNCTION(name, builtin, scalar_builtin)    \
  template <class T, int N>                                     \
  TREADLE_ALWAYS_INLINE Vec<T, N> name(Vec<T, N> x) {           \
    return Vec<T, N>::of(__builtin_elementwise_##builtin(x.v)); \
  }
#else
#define TREADLE_LANE_FUNCTION(name, builtin, scalar_builtin)                                      \
  template <class T, int N>                                                                       \
  TREADLE_ALWAYS_INLINE Vec<T, N> name(Vec<T, N> x) {                                             \
    return each_lane(x, [](T lane) { return static_cast<T>(__builtin_##scalar_builtin(lane)); }); \
  }
#endif
TREADLE_LANE_FUNCTION(floor, floor, floor)
TREADLE_LANE_FUNCTION(ceil, ceil, ceil)
TREADLE_LANE_FUNCTION(round_even, rint, rint)
TREADLE_LANE_FUNCTION(sqrt, sqrt, sqrt)
#undef TREADLE_LANE_FUNCTION

// a b + c, rounded once if the instruction set has fused operations.
template <class T, int N>
TREADLE_ALWAYS_INLINE Vec<T, N> multiply_add(Vec<T, N> a, Vec<T, N> b, Vec<T, N> c) {
#if !defined(__FMA__) && !defined(__ARM_FEATURE_FMA)
  return a * b + c;
#elif defined(__clang__)
  return Vec<T, N>::of(__builtin_elementwise_fma(a.v, b.v, c.v));
#else
  const auto fused = [](T x, T y, T z) {
    if constexpr (std::is_same_v<T, float>) {
      return __builtin_fmaf(x, y, z);
    } else {
      return __builtin_fma(x, y, z);
    }
  };
  if constexpr (N == 1) {
    return Vec<T, N>::of(fused(a.v, b.v, c.v));
  } else {
    Vec<T, N> y;
    for (int i = 0; i < N; ++i) y.v[i] = fused(a.v[i], b.v[i], c.v[i]);
    return y;
  }
#endif
}

}  // namespace TREADLE_ISA_NAMESPACE
}  // namespace treadle::kernels
