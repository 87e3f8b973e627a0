#pragma once
// QuantizeLinear of vectors of floats: saturate(round half to even(value / scale) + zero). NaN gives the lowest byte.
//
// With AVX2 and up, narrowing instructions saturate too. A quotient is computed by four multiplications and additions;
// this takes half as long as a division, and gives the same bits: with high + low = 1 / scale to twice the precision of
// a float, q = value * high + value * low is off by less than the distance of neighbouring floats, so q + (value - q *
// scale) * high rounds as the quotient does (Markstein's theorem).

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/isa/vector.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

using RoundedFloats = Vec<float, kFullLanes<float>>;

#if defined(__AVX2__)

// The operations of the instruction set that rounding needs, named after their instructions.
struct NarrowingLanes {
#if defined(__AVX512F__)
  using Floats = __m512;
  using Bits = __m512i;
  using Row = __m256i;  // the bytes of two vectors of floats
  static Floats splat(float x) { return _mm512_set1_ps(x); }
  static Floats min(Floats a, Floats b) { return _mm512_maskz_min_ps(0xFFFF, a, b); }  // b if either is NaN
  static Floats max(Floats a, Floats b) { return _mm512_maskz_max_ps(0xFFFF, a, b); }
  static Floats mul(Floats a, Floats b) { return _mm512_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm512_div_ps(a, b); }
  static Floats fmadd(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  static Floats fnmadd(Floats a, Floats b, Floats c) { return _mm512_fnmadd_ps(a, b, c); }
  static Bits whole(Floats a) { return _mm512_maskz_cvtps_epi32(0xFFFF, a); }
  static Bits words(int16_t x) { return _mm512_set1_epi16(x); }
  static Bits packs32(Bits a, Bits b) { return _mm512_packs_epi32(a, b); }
  static Bits adds16(Bits a, Bits b) { return _mm512_adds_epi16(a, b); }
  static Bits min16(Bits a, Bits b) { return _mm512_min_epi16(a, b); }
  static Bits max16(Bits a, Bits b) { return _mm512_max_epi16(a, b); }
  static Bits packs16(Bits a, Bits b) { return _mm512_packs_epi16(a, b); }
  static Bits packus16(Bits a, Bits b) { return _mm512_packus_epi16(a, b); }
  static Bits unpacklo32(Bits a, Bits b) { return _mm512_unpacklo_epi32(a, b); }
  static Bits unpackhi32(Bits a, Bits b) { return _mm512_unpackhi_epi32(a, b); }
  static Bits unpacklo64(Bits a, Bits b) { return _mm512_unpacklo_epi64(a, b); }
  static Bits unpackhi64(Bits a, Bits b) { return _mm512_unpackhi_epi64(a, b); }
  // Reorders [a0 b0][a1 b1]..., with four bytes in each element, to a0 a1 ..., b0 b1 ...
  static Row in_order(Bits v) {
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 4, 8, 12, 1, 5, 9, 13);
    return _mm512_castsi512_si256(_mm512_permutexvar_epi32(order, v));
  }
  static void store(Row row, void* to) { _mm256_storeu_si256(static_cast<__m256i*>(to), row); }
#else
  using Floats = __m256;
  using Bits = __m256i;
  using Row = __m128i;
  static Floats splat(float x) { return _mm256_set1_ps(x); }
  static Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }  // b if either is NaN
  static Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static Floats mul(Floats a, Floats b) { return _mm256_mul_ps(a, b); }
  static Floats div(Floats a, Floats b) { return _mm256_div_ps(a, b); }
  static Floats fmadd(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  static Floats fnmadd(Floats a, Floats b, Floats c) { return _mm256_fnmadd_ps(a, b, c); }
  static Bits whole(Floats a) { return _mm256_cvtps_epi32(a); }
  static Bits words(int16_t x) { return _mm256_set1_epi16(x); }
  static Bits packs32(Bits a, Bits b) { return _mm256_packs_epi32(a, b); }
  static Bits adds16(Bits a, Bits b) { return _mm256_adds_epi16(a, b); }
  static Bits min16(Bits a, Bits b) { return _mm256_min_epi16(a, b); }
  static Bits max16(Bits a, Bits b) { return _mm256_max_epi16(a, b); }
  static Bits packs16(Bits a, Bits b) { return _mm256_packs_epi16(a, b); }
  static Bits packus16(Bits a, Bits b) { return _mm256_packus_epi16(a, b); }
  static Bits unpacklo32(Bits a, Bits b) { return _mm256_unpacklo_epi32(a, b); }
  static Bits unpackhi32(Bits a, Bits b) { return _mm256_unpackhi_epi32(a, b); }
  static Bits unpacklo64(Bits a, Bits b) { return _mm256_unpacklo_epi64(a, b); }
  static Bits unpackhi64(Bits a, Bits b) { return _mm256_unpackhi_epi64(a, b); }
  static Row in_order(Bits v) {
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 0, 4, 1, 5);
    return _mm256_castsi256_si128(_mm256_permutevar8x32_epi32(v, order));
  }
  static void store(Row row, void* to) { _mm_storeu_si128(static_cast<__m128i*>(to), row); }
#endif
};

class ByteRounding {
  using L = NarrowingLanes;

 public:
  // The number of bytes made of two vectors of floats.
  static constexpr int kRow = 2 * kFullLanes<float>;

  // `scale` is 1 if the values were divided by the scale before.
  ByteRounding(float scale, int32_t zero, bool is_signed)
      : scale_(L::splat(scale)),
        high_(L::splat(has_exact_quotients(scale) ? 1 / scale : 0)),
        low_(L::splat(has_exact_quotients(scale) ? static_cast<float>(1 / double{scale} - double{1 / scale}) : 0)),
        most_(L::splat(kMost * std::fabs(scale))),
        least_(L::splat(-kMost * std::fabs(scale))),
        way_(scale == 1                   ? Way::kWhole
             : has_exact_quotients(scale) ? Way::kQuotient
                                          : Way::kDivision),
        zero_(L::words(static_cast<int16_t>(zero))),
        is_signed_(is_signed) {}

  // `to` has room for kRow bytes.
  TREADLE_ALWAYS_INLINE void put(RoundedFloats a, RoundedFloats b, void* to) const {
    put_words(L::packs32(whole(a), whole(b)), to);
  }
  // `levels`: without the zero point, packed from pairs of vectors.
  TREADLE_ALWAYS_INLINE void put_words(L::Bits levels, void* to) const {
    const L::Bits words = L::adds16(levels, zero_);
    L::store(L::in_order(narrow(words, words)), to);
  }

  // Four vectors as one: lane i has the bytes of lane i of a, b, c and d.
  TREADLE_ALWAYS_INLINE L::Bits quads(RoundedFloats a, RoundedFloats b, RoundedFloats c, RoundedFloats d) const {
    const L::Bits first = L::adds16(L::packs32(whole(a), whole(b)), zero_);
    const L::Bits second = L::adds16(L::packs32(whole(c), whole(d)), zero_);
    const L::Bits bytes = narrow(first, second);
    const __m128i byte_order = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
#if defined(__AVX512F__)
    return _mm512_shuffle_epi8(bytes, _mm512_broadcast_i32x4(byte_order));
#else
    return _mm256_shuffle_epi8(bytes, _mm256_broadcastsi128_si256(byte_order));
#endif
  }

 private:
  enum class Way : uint8_t { kWhole, kQuotient, kDivision };
  static constexpr float kMost = 1024;  // levels beyond it saturate with any zero point

  // Whether none of the four operations overflows or underflows, except for levels that are 0 or beyond kMost.
  static bool has_exact_quotients(float scale) {
    constexpr float kFar = 0x1p60f;
    return std::fabs(scale) <= kFar && std::fabs(scale) >= 1 / kFar;
  }

  // Rounds to whole numbers. NaN, and values far below the range, give the least integer.
  TREADLE_ALWAYS_INLINE L::Bits whole(RoundedFloats value) const {
    auto x = static_cast<L::Floats>(value.v);
    if (way_ == Way::kDivision) x = L::div(x, scale_);
    if (way_ != Way::kQuotient) return L::whole(L::min(L::splat(kMost), x));
    x = L::max(least_, L::min(most_, x));
    const L::Floats q = L::fmadd(x, high_, L::mul(x, low_));
    return L::whole(L::fmadd(L::fnmadd(q, scale_, x), high_, q));
  }
  TREADLE_ALWAYS_INLINE L::Bits narrow(L::Bits a, L::Bits b) const {
    return is_signed_ ? L::packs16(a, b) : L::packus16(a, b);
  }

  L::Floats scale_, high_, low_, most_, least_;
  Way way_;
  L::Bits zero_;
  bool is_signed_;
};

#else

class ByteRounding {
 public:
  static constexpr int kRow = 2 * kFullLanes<float>;

  ByteRounding(float scale, int32_t zero, bool is_signed)
      : scale_(scale), zero_(zero), least_(is_signed ? -128 : 0), most_(is_signed ? 127 : 255) {}

  void put(RoundedFloats a, RoundedFloats b, void* to) const {
    level(a).store(static_cast<uint8_t*>(to));
    level(b).store(static_cast<uint8_t*>(to) + kFullLanes<float>);
  }

 private:
  Vec<uint8_t, kFullLanes<float>> level(RoundedFloats value) const {
    constexpr float kRound = 12582912.0f;  // adding and subtracting 1.5 * 2^23 rounds floats below 2^22 half to even
    const RoundedFloats least(static_cast<float>(least_ - zero_)), most(static_cast<float>(most_ - zero_));
    RoundedFloats v = scale_ == 1 ? value : value / RoundedFloats(scale_);
    v = select(v >= least, v, least);
    v = select(v <= most, v, most);
    v = (v + RoundedFloats(kRound)) - RoundedFloats(kRound);
    return convert_lanes<uint8_t>(convert_lanes<int32_t>(v) + Vec<int32_t, kFullLanes<int32_t>>(zero_));
  }

  float scale_;
  int32_t zero_, least_, most_;
};

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
