#pragma once
// Register tiles of 8-bit products. Three schemes, all exact:
//   kPairs   A as int16 with its zero point subtracted, B as int8, widened on load; products of two steps are added in
//            32 bits.
//   kFitted  A as uint8, B as int8 whose neighbours fit together: vpmaddubsw adds the products of two steps in 16 bits,
//            which never saturates if weights of one sign add up to at most 128 (255 * 128 < 2^15).
//   kQuads   the four-step product of VNNI: A as uint8, B as int8, sums in 32 bits without saturation.
// Panels of B hold two vectors of columns: [step / kSteps][column][kSteps] bytes.

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/isa/unrolled.h"
#include "kernels/isa/vector.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int kIntLanes = kFullLanes<int32_t>;
inline constexpr int kIntPanel = 2 * kIntLanes;

#if defined(__AVX512F__)

struct IntVector {
  __m512i v;
  static IntVector zero() { return {_mm512_setzero_si512()}; }
  static IntVector splat(const void* four_bytes) {
    int32_t x;
    std::memcpy(&x, four_bytes, 4);
    return {_mm512_set1_epi32(x)};
  }
  static IntVector widen(const int8_t* p) {
    return {_mm512_cvtepi8_epi16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
  }
  static IntVector load(const int8_t* p) { return {_mm512_loadu_si512(p)}; }
  void store(int32_t* p) const { _mm512_storeu_si512(p, v); }
  void add_pairs(IntVector a, IntVector b) { v = _mm512_add_epi32(v, _mm512_madd_epi16(a.v, b.v)); }
  void add_fitted(IntVector a, IntVector b) {
    const __m512i pairs = _mm512_maddubs_epi16(a.v, b.v);
    v = _mm512_add_epi32(v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }
  // Assembly, because this file is also compiled for processors without the instruction.
  void add_quads(IntVector a, IntVector b) { asm("vpdpbusd %2, %1, %0" : "+v"(v) : "v"(a.v), "v"(b.v)); }
};

#elif defined(__AVX2__)

struct IntVector {
  __m256i v;
  static IntVector zero() { return {_mm256_setzero_si256()}; }
  static IntVector splat(const void* four_bytes) {
    int32_t x;
    std::memcpy(&x, four_bytes, 4);
    return {_mm256_set1_epi32(x)};
  }
  static IntVector widen(const int8_t* p) {
    return {_mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
  }
  static IntVector load(const int8_t* p) { return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))}; }
  void store(int32_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  void add_pairs(IntVector a, IntVector b) { v = _mm256_add_epi32(v, _mm256_madd_epi16(a.v, b.v)); }
  void add_fitted(IntVector a, IntVector b) {
    const __m256i pairs = _mm256_maddubs_epi16(a.v, b.v);
    v = _mm256_add_epi32(v, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  // As for AVX-512; {vex}: the form of AVX-VNNI.
  void add_quads(IntVector a, IntVector b) { asm("%{vex%} vpdpbusd %2, %1, %0" : "+x"(v) : "x"(a.v), "x"(b.v)); }
};

#elif defined(__SSE2__)

struct IntVector {
  __m128i v;
  static IntVector zero() { return {_mm_setzero_si128()}; }
  static IntVector splat(const void* four_bytes) {
    int32_t x;
    std::memcpy(&x, four_bytes, 4);
    return {_mm_set1_epi32(x)};
  }
  static IntVector widen(const int8_t* p) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    return {_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8)};
  }
  void store(int32_t* p) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
  void add_pairs(IntVector a, IntVector b) { v = _mm_add_epi32(v, _mm_madd_epi16(a.v, b.v)); }
};

#else

struct IntVector {
  int32_t sums[kIntLanes];
  int16_t pairs[2 * kIntLanes];
  static IntVector zero() { return {}; }
  static IntVector splat(const void* four_bytes) {
    IntVector r;
    for (int i = 0; i < kIntLanes; ++i) std::memcpy(r.pairs + 2 * i, four_bytes, 4);
    return r;
  }
  static IntVector widen(const int8_t* p) {
    IntVector r;
    for (int i = 0; i < 2 * kIntLanes; ++i) r.pairs[i] = p[i];
    return r;
  }
  void store(int32_t* p) const { std::memcpy(p, sums, sizeof sums); }
  void add_pairs(IntVector a, IntVector b) {
    for (int i = 0; i < kIntLanes; ++i) {
      const int32_t sum = a.pairs[2 * i] * b.pairs[2 * i] + a.pairs[2 * i + 1] * b.pairs[2 * i + 1];
      sums[i] = static_cast<int32_t>(static_cast<uint32_t>(sums[i]) + static_cast<uint32_t>(sum));
    }
  }
};

#endif

enum class QScheme { kPairs, kFitted, kQuads };

#if defined(__AVX2__)

// Whether this processor supports kQuads.
inline bool has_quads() {
#if defined(__AVX512F__)
  return __builtin_cpu_supports("avx512vnni");
#else
  return __builtin_cpu_supports("avxvnni");
#endif
}

#endif

template <QScheme kScheme>
inline constexpr int kIntSteps = kScheme == QScheme::kPairs ? 2 : 4;

// As many rows as leave registers for two vectors of B, one of A and the products.
template <QScheme kScheme>
#if defined(__AVX512F__)
inline constexpr int kIntRows = kScheme == QScheme::kQuads ? 12 : 8;
#else
inline constexpr int kIntRows = 4;
#endif

// Templates over the vector type, because some vector types lack some schemes.
template <QScheme kScheme, class V = IntVector>
[[gnu::always_inline]] inline V load_step(const int8_t* b) {
  if constexpr (kScheme == QScheme::kPairs) {
    return V::widen(b);
  } else {
    return V::load(b);
  }
}

// For kFitted and kQuads: the operand whose bytes are unsigned. The other operand has the weights.
enum class QSide { kRows, kPanels };

template <QScheme kScheme, QSide kUnsigned, class V>
[[gnu::always_inline]] inline void add_step(V& sum, V a, V b) {
  if constexpr (kUnsigned == QSide::kPanels) return add_step<kScheme, QSide::kRows>(sum, b, a);
  if constexpr (kScheme == QScheme::kPairs) {
    sum.add_pairs(a, b);
  } else if constexpr (kScheme == QScheme::kFitted) {
    sum.add_fitted(a, b);
  } else {
    sum.add_quads(a, b);
  }
}

// Multiplies kRows rows of A (four bytes a step, rows a_row bytes apart) by one panel into sums[row][kIntPanel].
template <QScheme kScheme, QSide kUnsigned, int kRows>
void qtile(const std::byte* a, int64_t a_row, const int8_t* b, int64_t steps, int32_t* sums) {
  constexpr int kBytes = kIntLanes * kIntSteps<kScheme>;
  constexpr int kGroups = (kRows + 2) / 3;
  IntVector acc[kRows][2];
  unrolled<kRows>([&](auto r) __attribute__((always_inline)) { acc[r][0] = acc[r][1] = IntVector::zero(); });
  const std::byte* rows[kGroups];
  unrolled<kGroups>([&](auto g) __attribute__((always_inline)) { rows[g] = a + 3 * g * a_row; });
#pragma GCC unroll 1
  for (int64_t p = 0; p < steps; ++p) {
    const IntVector b0 = load_step<kScheme>(b), b1 = load_step<kScheme>(b + kBytes);
    unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
      const IntVector x = IntVector::splat(rows[r / 3] + (r % 3) * a_row);
      add_step<kScheme, kUnsigned>(acc[r][0], x, b0);
      add_step<kScheme, kUnsigned>(acc[r][1], x, b1);
    });
    unrolled<kGroups>([&](auto g) __attribute__((always_inline)) { rows[g] += 4; });
    b += 2 * kBytes;
  }
  unrolled<kRows>([&](auto r) __attribute__((always_inline)) {
    acc[r][0].store(sums + r * kIntPanel);
    acc[r][1].store(sums + r * kIntPanel + kIntLanes);
  });
}

using QTile = void (*)(const std::byte*, int64_t, const int8_t*, int64_t, int32_t*);

template <QScheme kScheme, QSide kUnsigned, int... kRows>
constexpr std::array<QTile, sizeof...(kRows)> qtiles_by_rows(std::integer_sequence<int, kRows...>) {
  return {qtile<kScheme, kUnsigned, kRows + 1>...};
}
template <QScheme kScheme, QSide kUnsigned = QSide::kRows>
inline constexpr auto kQtileTable =
    qtiles_by_rows<kScheme, kUnsigned>(std::make_integer_sequence<int, kIntRows<kScheme>>());

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
