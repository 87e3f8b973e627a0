#pragma once
// One vector register as the matrix kernels see it: Lanes<T> for T = float, double, uint32_t, uint64_t, as wide as the
// instruction set allows. mul_add is fused if the instruction set has fused operations. Integers wrap.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "base/float_formats.h"
#include "kernels/isa/vector_bytes.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX512F__)
inline constexpr int kVectorRegisters = 32;
#else
inline constexpr int kVectorRegisters = 16;
#endif

// A finite float16 in panels of weights.
struct Half {
  uint16_t bits;
};

// Portable form: the compiler's own vectors.
template <class T>
struct PortableLanes {
  using Scalar = T;
  typedef T V __attribute__((vector_size(kVectorBytes)));
  using Mask = int;  // the number of lanes that exist
  static constexpr int kCount = kVectorBytes / int{sizeof(T)};

  static V zero() { return V{}; }
  static V load(const T* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(T* p, V v) { std::memcpy(p, &v, sizeof v); }
  static V splat(T x) {
    V v{};
    for (int i = 0; i < kCount; ++i) v[i] = x;
    return v;
  }
  static V mul_add(V a, V b, V c) {
#if defined(__ARM_FEATURE_FMA) && defined(__clang__)
    if constexpr (sizeof(T) >= 4 && T(0.5) != T(0)) return __builtin_elementwise_fma(a, b, c);
#endif
    return a * b + c;
  }
  // The shifted bits of a finite half are a float that is too small by a constant factor; subnormal halves as well.
  static V load(const Half* p)
    requires std::is_same_v<T, float>
  {
    typedef uint16_t Bits __attribute__((vector_size(kVectorBytes / 2)));
    typedef uint32_t Words __attribute__((vector_size(kVectorBytes)));
    Bits bits;
    std::memcpy(&bits, p, sizeof bits);
    const Words words = __builtin_convertvector(bits, Words);
    const V magnitude = reinterpret_cast<V>((words & 0x7FFF) << 13) * 0x1p112f;
    return reinterpret_cast<V>(reinterpret_cast<Words>(magnitude) | (words & 0x8000) << 16);
  }
  // Rounds, ties to even.
  static void store(Half* p, V v)
    requires std::is_same_v<T, float>
  {
    for (int i = 0; i < kCount; ++i) p[i].bits = float_to_half(v[i]);
  }
  static V mul(V a, V b) { return a * b; }
  static V add(V a, V b) { return a + b; }
  static V div(V a, V b) { return a / b; }
  static V max(V a, V b) { return select(a > b, a, b); }  // b if either is NaN
  static V min(V a, V b) { return select(a < b, a, b); }
  static V max_or_nan(V a, V b) { return select(a != a, a, max(a, b)); }  // NaN if either is
  template <class M>
  static V select(M mask_bits, V a, V b) {
    return reinterpret_cast<V>((reinterpret_cast<M>(a) & mask_bits) | (reinterpret_cast<M>(b) & ~mask_bits));
  }
  static Mask mask(int count) { return count; }
  static V load(const T* p, Mask count) {
    V v{};
    for (int i = 0; i < count; ++i) v[i] = p[i];
    return v;
  }
  static void store(T* p, Mask count, V v) {
    for (int i = 0; i < count; ++i) p[i] = v[i];
  }
  // Stores the lanes [first, first + count) to p[0], ..., p[count - 1].
  static void store_from(T* p, int first, int count, V v) {
    for (int i = 0; i < count; ++i) p[i] = v[first + i];
  }
};

template <class T>
struct Lanes : PortableLanes<T> {};

#if defined(__AVX512F__)

// max and min have a mask of all lanes, because g++ 12 warns about its own header without one.
template <>
struct Lanes<float> {
  using Scalar = float;
  using V = __m512;
  using Mask = __mmask16;
  static constexpr int kCount = 16;
  static V zero() { return _mm512_setzero_ps(); }
  static V load(const float* p) { return _mm512_loadu_ps(p); }
  static V load(const Half* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))); }
  static void store(float* p, V v) { _mm512_storeu_ps(p, v); }
  static void store(Half* p, V v) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static V splat(float x) { return _mm512_set1_ps(x); }
  static V mul_add(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm512_mul_ps(a, b); }
  static V add(V a, V b) { return _mm512_add_ps(a, b); }
  static V div(V a, V b) { return _mm512_div_ps(a, b); }
  static V max(V a, V b) { return _mm512_maskz_max_ps(0xFFFF, a, b); }  // b if either is NaN
  static V min(V a, V b) { return _mm512_maskz_min_ps(0xFFFF, a, b); }
  static V max_or_nan(V a, V b) {  // NaN if either is
    return _mm512_mask_mov_ps(max(a, b), _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), a);
  }
  static Mask mask(int count) { return static_cast<Mask>((1u << count) - 1); }
  static V load(const float* p, Mask m) { return _mm512_maskz_loadu_ps(m, p); }
  static void store(float* p, Mask m, V v) { _mm512_mask_storeu_ps(p, m, v); }
  static void store_from(float* p, int first, int count, V v) {
    _mm512_mask_storeu_ps(p - first, static_cast<Mask>(((1u << count) - 1) << first), v);
  }
};

template <>
struct Lanes<double> {
  using Scalar = double;
  using V = __m512d;
  using Mask = __mmask8;
  static constexpr int kCount = 8;
  static V zero() { return _mm512_setzero_pd(); }
  static V load(const double* p) { return _mm512_loadu_pd(p); }
  static void store(double* p, V v) { _mm512_storeu_pd(p, v); }
  static V splat(double x) { return _mm512_set1_pd(x); }
  static V mul_add(V a, V b, V c) { return _mm512_fmadd_pd(a, b, c); }
  static V mul(V a, V b) { return _mm512_mul_pd(a, b); }
  static V add(V a, V b) { return _mm512_add_pd(a, b); }
  static V div(V a, V b) { return _mm512_div_pd(a, b); }
  static V max(V a, V b) { return _mm512_maskz_max_pd(0xFF, a, b); }  // b if either is NaN
  static V min(V a, V b) { return _mm512_maskz_min_pd(0xFF, a, b); }
  static V max_or_nan(V a, V b) {  // NaN if either is
    return _mm512_mask_mov_pd(max(a, b), _mm512_cmp_pd_mask(a, a, _CMP_UNORD_Q), a);
  }
  static Mask mask(int count) { return static_cast<Mask>((1u << count) - 1); }
  static V load(const double* p, Mask m) { return _mm512_maskz_loadu_pd(m, p); }
  static void store(double* p, Mask m, V v) { _mm512_mask_storeu_pd(p, m, v); }
  static void store_from(double* p, int first, int count, V v) {
    _mm512_mask_storeu_pd(p - first, static_cast<Mask>(((1u << count) - 1) << first), v);
  }
};

#elif defined(__AVX2__)

template <>
struct Lanes<float> {
  using Scalar = float;
  using V = __m256;
  using Mask = __m256i;
  static constexpr int kCount = 8;
  static V zero() { return _mm256_setzero_ps(); }
  static V load(const float* p) { return _mm256_loadu_ps(p); }
  static V load(const Half* p) { return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
  static void store(float* p, V v) { _mm256_storeu_ps(p, v); }
  static void store(Half* p, V v) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
  static V splat(float x) { return _mm256_set1_ps(x); }
  static V mul_add(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V mul(V a, V b) { return _mm256_mul_ps(a, b); }
  static V add(V a, V b) { return _mm256_add_ps(a, b); }
  static V div(V a, V b) { return _mm256_div_ps(a, b); }
  static V max(V a, V b) { return _mm256_max_ps(a, b); }  // b if either is NaN
  static V min(V a, V b) { return _mm256_min_ps(a, b); }
  static V max_or_nan(V a, V b) {  // NaN if either is
    return _mm256_blendv_ps(max(a, b), a, _mm256_cmp_ps(a, a, _CMP_UNORD_Q));
  }
  static Mask mask(int count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static V load(const float* p, Mask m) { return _mm256_maskload_ps(p, m); }
  static void store(float* p, Mask m, V v) { _mm256_maskstore_ps(p, m, v); }
  static void store_from(float* p, int first, int count, V v) {
    _mm256_maskstore_ps(p - first, _mm256_andnot_si256(mask(first), mask(first + count)), v);
  }
};

template <>
struct Lanes<double> {
  using Scalar = double;
  using V = __m256d;
  using Mask = __m256i;
  static constexpr int kCount = 4;
  static V zero() { return _mm256_setzero_pd(); }
  static V load(const double* p) { return _mm256_loadu_pd(p); }
  static void store(double* p, V v) { _mm256_storeu_pd(p, v); }
  static V splat(double x) { return _mm256_set1_pd(x); }
  static V mul_add(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  static V mul(V a, V b) { return _mm256_mul_pd(a, b); }
  static V add(V a, V b) { return _mm256_add_pd(a, b); }
  static V div(V a, V b) { return _mm256_div_pd(a, b); }
  static V max(V a, V b) { return _mm256_max_pd(a, b); }  // b if either is NaN
  static V min(V a, V b) { return _mm256_min_pd(a, b); }
  static V max_or_nan(V a, V b) {  // NaN if either is
    return _mm256_blendv_pd(max(a, b), a, _mm256_cmp_pd(a, a, _CMP_UNORD_Q));
  }
  static Mask mask(int count) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3)); }
  static V load(const double* p, Mask m) { return _mm256_maskload_pd(p, m); }
  static void store(double* p, Mask m, V v) { _mm256_maskstore_pd(p, m, v); }
  static void store_from(double* p, int first, int count, V v) {
    _mm256_maskstore_pd(p - first, _mm256_andnot_si256(mask(first), mask(first + count)), v);
  }
};

#endif

#if defined(__AVX2__)
// Lanes 0, 2, ... of `low`, then 1, 3, ... of `high`. The first lane of `high` repeats the last one of `low`.
inline Lanes<float>::V even_lanes(Lanes<float>::V low, Lanes<float>::V high) {
#if defined(__AVX512F__)
  const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31);
  return _mm512_permutex2var_ps(low, even, high);
#else
  const auto pairs = _mm256_shuffle_ps(low, high, 0xD8);
  return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xD8));
#endif
}
#endif

// Loads p[0], p[2], ..., one element for each lane. Reads no element behind the last one.
template <class T>
typename Lanes<T>::V load_even(const T* p) {
  using L = Lanes<T>;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) return even_lanes(L::load(p), L::load(p + L::kCount - 1));
#endif
  T gathered[L::kCount];
  for (int i = 0; i < L::kCount; ++i) gathered[i] = p[2 * i];
  return L::load(gathered);
}

// The same for the first `count` lanes; the other lanes are zero.
template <class T>
typename Lanes<T>::V load_even(const T* p, int count) {
  using L = Lanes<T>;
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    const int elements = 2 * count - 1;
    const auto low = L::load(p, L::mask(elements < L::kCount ? elements : L::kCount));
    const int rest = elements - (L::kCount - 1);
    return even_lanes(low, rest > 0 ? L::load(p + L::kCount - 1, L::mask(rest)) : L::zero());
  }
#endif
  T gathered[L::kCount] = {};
  for (int i = 0; i < count; ++i) gathered[i] = p[2 * i];
  return L::load(gathered);
}

// Stores the first `count` lanes; `count` is less than all. AVX2's masked stores are not used, since they take many
// cycles on some processors.
template <class T>
[[gnu::always_inline]] inline void store_first(T* p, int count, typename Lanes<T>::V v) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  if constexpr (std::is_same_v<T, float>) {
    __m128 part = _mm256_castps256_ps128(v);
    if ((count & 4) != 0) {
      _mm_storeu_ps(p, part);
      part = _mm256_extractf128_ps(v, 1);
      p += 4;
    }
    if ((count & 2) != 0) {
      _mm_storel_pi(reinterpret_cast<__m64*>(p), part);
      part = _mm_movehl_ps(part, part);
      p += 2;
    }
    if ((count & 1) != 0) _mm_store_ss(p, part);
    return;
  }
#endif
  Lanes<T>::store(p, Lanes<T>::mask(count), v);
}

#if defined(__AVX2__)
struct ZippedLanes {
  Lanes<float>::V first, second;
};
// a[0], b[0], a[1], b[1], ...
[[gnu::always_inline]] inline ZippedLanes zipped(Lanes<float>::V a, Lanes<float>::V b) {
#if defined(__AVX512F__)
  const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const __m512i high = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  return {_mm512_permutex2var_ps(a, low, b), _mm512_permutex2var_ps(a, high, b)};
#else
  const auto low = _mm256_unpacklo_ps(a, b), high = _mm256_unpackhi_ps(a, b);
  return {_mm256_permute2f128_ps(low, high, 0x20), _mm256_permute2f128_ps(low, high, 0x31)};
#endif
}
// Adds the zipped lanes to to[0 .. 2 * lanes).
[[gnu::always_inline]] inline void add_zipped(Lanes<float>::V a, Lanes<float>::V b, float* to) {
  using L = Lanes<float>;
  const auto [first, second] = zipped(a, b);
  L::store(to, L::add(L::load(to), first));
  L::store(to + L::kCount, L::add(L::load(to + L::kCount), second));
}
#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
