// Pairs of bytes. The exact way computes each step as its operator does. With AVX2 and up, two other ways take fewer
// steps. They round differently, but that seldom changes a level. There are only 65,536 pairs, so `fit` tries them all.

#include "kernels/byte_pairs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "kernels/isa/byte_rounding.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

constexpr int kLanes = kFullLanes<float>;
constexpr size_t kRow = ByteRounding::kRow;

template <class Byte>
TREADLE_ALWAYS_INLINE Vec<int32_t, kLanes> widened(const Byte* from) {
  return convert_lanes<int32_t>(Vec<Byte, kLanes>::load(from));
}

template <class Byte>
TREADLE_ALWAYS_INLINE RoundedFloats dequantized(const Byte* from, const ByteScale& scale) {
  return convert_lanes<float>(widened(from) - Vec<int32_t, kLanes>(scale.zero)) * RoundedFloats(scale.scale);
}

TREADLE_ALWAYS_INLINE RoundedFloats dequantized(const float* from, const ByteScale& scale) {
  return RoundedFloats::load(from) * RoundedFloats(scale.scale);
}

// A + B or A * B.
template <bool kMultiplies, class A, class B>
TREADLE_ALWAYS_INLINE RoundedFloats combined(const A* a, const B* b, const BytePairs& pairs) {
  const RoundedFloats left = dequantized(a, pairs.a), right = dequantized(b, pairs.b);
  return kMultiplies ? left * right : left + right;
}

// Each way computes `kRow` bytes of y at a time.
template <bool kMultiplies, class A, class B>
class ExactPairs {
 public:
  explicit ExactPairs(const BytePairs& pairs)
      : pairs_(pairs), rounding_(pairs.y.scale, pairs.y.zero, pairs.y.is_signed) {}

  TREADLE_ALWAYS_INLINE void put(const A* a, const B* b, void* y) const {
    rounding_.put(value(a, b), value(a + kLanes, b + kLanes), y);
  }

 private:
  TREADLE_ALWAYS_INLINE RoundedFloats value(const A* a, const B* b) const {
    const RoundedFloats low(pairs_.low), high(pairs_.high);
    RoundedFloats v = combined<kMultiplies>(a, b, pairs_);
    v = select(v < low, low, v);
    return select(v > high, high, v);
  }

  const BytePairs pairs_;
  const ByteRounding rounding_;
};

#if defined(__AVX2__)

// Converts two vectors of levels to words, clamps them to the levels of the bounds, then narrows them to bytes.
class WordStore {
  using L = NarrowingLanes;

 public:
  explicit WordStore(const BytePairs& pairs)
      : rounding_(1, pairs.y.zero, pairs.y.is_signed),
        low_(L::words(level(pairs.low, pairs.y))),
        high_(L::words(level(pairs.high, pairs.y))) {}

  TREADLE_ALWAYS_INLINE void put(L::Floats a, L::Floats b, void* y) const {
    const L::Bits words = L::packs32(L::whole(a), L::whole(b));
    rounding_.put_words(L::max16(low_, L::min16(high_, words)), y);
  }

 private:
  // The level of a bound, without the zero point.
  static int16_t level(float bound, const ByteScale& y) {
    return static_cast<int16_t>(std::nearbyint(std::clamp(bound / y.scale, -1024.f, 1024.f)));
  }

  ByteRounding rounding_;
  L::Bits low_, high_;
};

template <bool kMultiplies, class A, class B>
class NearPairs {
  using L = NarrowingLanes;

 public:
  explicit NearPairs(const BytePairs& pairs)
      : pairs_(pairs),
        high_(L::splat(1 / pairs.y.scale)),
        low_(L::splat(static_cast<float>(1 / double{pairs.y.scale} - double{1 / pairs.y.scale}))),
        store_(pairs) {}

  TREADLE_ALWAYS_INLINE void put(const A* a, const B* b, void* y) const {
    store_.put(quotient(a, b), quotient(a + kLanes, b + kLanes), y);
  }

 private:
  TREADLE_ALWAYS_INLINE L::Floats quotient(const A* a, const B* b) const {
    const auto value = static_cast<L::Floats>(combined<kMultiplies>(a, b, pairs_).v);
    return L::fmadd(value, high_, L::mul(value, low_));
  }

  const BytePairs pairs_;
  L::Floats high_, low_;
  WordStore store_;
};

template <bool kMultiplies, class A, class B>
class QuickPairs {
  using L = NarrowingLanes;

 public:
  explicit QuickPairs(const BytePairs& pairs)
      : a_factor_(L::splat(pairs.a_factor)),
        b_factor_(L::splat(pairs.b_factor)),
        offset_(L::splat(pairs.offset)),
        a_zero_(pairs.a.zero),
        b_zero_(pairs.b.zero),
        store_(pairs) {}

  TREADLE_ALWAYS_INLINE void put(const A* a, const B* b, void* y) const {
    store_.put(level(a, b), level(a + kLanes, b + kLanes), y);
  }

 private:
  TREADLE_ALWAYS_INLINE L::Floats level(const A* a, const B* b) const {
    if constexpr (kMultiplies) {
      const auto left = convert_lanes<float>(widened(a) - Vec<int32_t, kLanes>(a_zero_));
      const auto right = convert_lanes<float>(widened(b) - Vec<int32_t, kLanes>(b_zero_));
      return L::fmadd(static_cast<L::Floats>((left * right).v), a_factor_, offset_);
    } else {
      const auto left = static_cast<L::Floats>(convert_lanes<float>(widened(a)).v);
      const auto right = static_cast<L::Floats>(convert_lanes<float>(widened(b)).v);
      return L::fmadd(left, a_factor_, L::fmadd(right, b_factor_, offset_));
    }
  }

  L::Floats a_factor_, b_factor_, offset_;
  int32_t a_zero_, b_zero_;
  WordStore store_;
};

#endif

template <class Pairs, class A, class B>
void run_rows(const Pairs& pairs, const A* a, const B* b, void* out, size_t n) {
  auto* y = static_cast<std::byte*>(out);
  size_t i = 0;
  for (; i + kRow <= n; i += kRow) pairs.put(a + i, b + i, y + i);
  if (i == n) return;
  A a_rest[kRow] = {};
  B b_rest[kRow] = {};
  std::byte row[kRow];
  std::copy_n(a + i, n - i, a_rest);
  std::copy_n(b + i, n - i, b_rest);
  pairs.put(a_rest, b_rest, row);
  std::copy_n(row, n - i, y + i);
}

template <bool kMultiplies, class A, class B>
void run_bytes(const BytePairs& pairs, const void* a, const void* b, void* y, size_t n) {
  const auto* left = static_cast<const A*>(a);
  const auto* right = static_cast<const B*>(b);
#if defined(__AVX2__)
  using Way = BytePairs::Way;
  if constexpr (!std::is_same_v<B, float>) {
    if (pairs.way == Way::kQuick) return run_rows(QuickPairs<kMultiplies, A, B>(pairs), left, right, y, n);
    if (pairs.way == Way::kNear) return run_rows(NearPairs<kMultiplies, A, B>(pairs), left, right, y, n);
  }
#endif
  run_rows(ExactPairs<kMultiplies, A, B>(pairs), left, right, y, n);
}

template <bool kMultiplies>
void run_signs(const BytePairs& pairs, const void* a, const void* b, void* y, size_t n) {
  const bool a_signed = pairs.a.is_signed, b_signed = pairs.b.is_signed;
  if (pairs.b_is_float) {
    return a_signed ? run_bytes<kMultiplies, int8_t, float>(pairs, a, b, y, n)
                    : run_bytes<kMultiplies, uint8_t, float>(pairs, a, b, y, n);
  }
  if (a_signed && b_signed) return run_bytes<kMultiplies, int8_t, int8_t>(pairs, a, b, y, n);
  if (a_signed) return run_bytes<kMultiplies, int8_t, uint8_t>(pairs, a, b, y, n);
  if (b_signed) return run_bytes<kMultiplies, uint8_t, int8_t>(pairs, a, b, y, n);
  run_bytes<kMultiplies, uint8_t, uint8_t>(pairs, a, b, y, n);
}

void run_dense(const BytePairs& pairs, const void* a, const void* b, void* y, size_t n) {
  pairs.multiplies ? run_signs<true>(pairs, a, b, y, n) : run_signs<false>(pairs, a, b, y, n);
}

#if defined(__AVX2__)

// Looks up bytes in a table by shuffles of 16-byte lines. The index counts down by 16 from line to line. A shuffle
// gives 0 where the index is negative, so a byte picks from its own line and from all lines before it. Each line
// therefore holds the difference (exclusive or) from the line before, and the picks combine to the byte of its own
// line.
class LookUp {
#if defined(__AVX512F__)
  using Bits = __m512i;
  static Bits wide(__m128i line) { return _mm512_broadcast_i32x4(line); }
  static Bits splat(int8_t x) { return _mm512_set1_epi8(x); }
  static Bits flipped(Bits a, Bits b) { return _mm512_xor_si512(a, b); }
  static Bits less(Bits a, Bits b) { return _mm512_subs_epi8(a, b); }
  static Bits pick(Bits line, Bits index) { return _mm512_shuffle_epi8(line, index); }
#else
  using Bits = __m256i;
  static Bits wide(__m128i line) { return _mm256_broadcastsi128_si256(line); }
  static Bits splat(int8_t x) { return _mm256_set1_epi8(x); }
  static Bits flipped(Bits a, Bits b) { return _mm256_xor_si256(a, b); }
  static Bits less(Bits a, Bits b) { return _mm256_subs_epi8(a, b); }
  static Bits pick(Bits line, Bits index) { return _mm256_shuffle_epi8(line, index); }
#endif

 public:
  static constexpr size_t kBytes = sizeof(Bits);

  explicit LookUp(const uint8_t* table) {
    for (int i = 0; i < 16; ++i) {
      __m128i line = load(table + 16 * i);
      if (i % 8 != 0) line = _mm_xor_si128(line, load(table + 16 * (i - 1)));
      lines_[i] = wide(line);
    }
  }

  TREADLE_ALWAYS_INLINE void put(const uint8_t* x, uint8_t* y) const {
    Bits index, found = splat(0);
    std::memcpy(&index, x, kBytes);
    Bits upper = flipped(index, splat(-128));
    for (int i = 0; i < 8; ++i) {
      found = flipped(found, flipped(pick(lines_[i], index), pick(lines_[8 + i], upper)));
      index = less(index, splat(16));
      upper = less(upper, splat(16));
    }
    std::memcpy(y, &found, kBytes);
  }

 private:
  static __m128i load(const uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }

  Bits lines_[16];
};

void look_up(const uint8_t* x, const uint8_t* table, uint8_t* y, size_t n) {
  constexpr size_t kBytes = LookUp::kBytes;
  size_t i = 0;
  if (n >= 4 * kBytes) {
    const LookUp lines(table);
    for (; i + kBytes <= n; i += kBytes) lines.put(x + i, y + i);
  }
  for (; i < n; ++i) y[i] = table[x[i]];
}

#else

void look_up(const uint8_t* x, const uint8_t* table, uint8_t* y, size_t n) {
  for (size_t i = 0; i < n; ++i) y[i] = table[x[i]];
}

#endif

// An operand: a row, or one element repeated.
constexpr size_t kPiece = 512;
class Operand {
 public:
  Operand(const void* x, bool is_float, size_t step, size_t n)
      : from_(static_cast<const std::byte*>(x)), width_(is_float ? sizeof(float) : 1), repeats_(step == 0) {
    if (!repeats_) return;
    const size_t count = std::min(n, kPiece);
    if (is_float) {
      float element;
      std::memcpy(&element, x, sizeof(element));
      std::fill_n(many_.begin(), count, element);
    } else {
      std::memset(many_.data(), *static_cast<const uint8_t*>(x), count);
    }
  }
  // The piece of the operand that begins at element i.
  const void* at(size_t i) const { return repeats_ ? static_cast<const void*>(many_.data()) : from_ + i * width_; }

 private:
  const std::byte* from_;
  size_t width_;
  bool repeats_;
  std::array<float, kPiece> many_;
};

using AllBytes = std::array<uint8_t, 256>;

AllBytes all_bytes() {
  AllBytes bytes;
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return bytes;
}

void run(const BytePairs& pairs, const void* a, size_t a_step, const void* b, size_t b_step, void* y, size_t n) {
  if (a_step == 1 && b_step == 1) return run_dense(pairs, a, b, y, n);
  const bool a_varies = a_step == 1, b_varies = b_step == 1;
  constexpr size_t kLong = 1024;  // from here on, building a table pays
  if (n >= kLong && a_varies != b_varies && !(b_varies && pairs.b_is_float)) {
    const AllBytes all = all_bytes();
    AllBytes table;
    run(pairs, a_varies ? all.data() : a, a_step, b_varies ? all.data() : b, b_step, table.data(), table.size());
    return look_up(static_cast<const uint8_t*>(a_varies ? a : b), table.data(), static_cast<uint8_t*>(y), n);
  }
  const Operand left(a, false, a_step, n), right(b, pairs.b_is_float, b_step, n);
  for (size_t i = 0; i < n; i += kPiece) {
    run_dense(pairs, left.at(i), right.at(i), static_cast<uint8_t*>(y) + i, std::min(kPiece, n - i));
  }
}

#if defined(__AVX2__)

// Whether `other` gives the bytes of `exact` for byte `b` of one operand and all bytes of the other.
bool agree(const BytePairs& exact, const BytePairs& other, uint8_t b) {
  static const AllBytes kAll = all_bytes();
  AllBytes right, expected, found;
  right.fill(b);
  run_dense(exact, kAll.data(), right.data(), expected.data(), kAll.size());
  run_dense(other, kAll.data(), right.data(), found.data(), kAll.size());
  return expected == found;
}

// The first byte for which the two ways differ, from `first` on and then from 0; 256 if there is none.
int first_unlike(const BytePairs& exact, const BytePairs& other, int first) {
  for (int i = 0; i < 256; ++i) {
    const int b = (first + i) % 256;
    if (!agree(exact, other, static_cast<uint8_t>(b))) return b;
  }
  return 256;
}

// Moves all levels of the quick way by a little if a level falls exactly between two bytes, until all pairs agree.
bool fit_quick(BytePairs& pairs) {
  const double a_factor = double{pairs.a.scale} / pairs.y.scale, b_factor = double{pairs.b.scale} / pairs.y.scale;
  BytePairs quick = pairs;
  quick.way = BytePairs::Way::kQuick;
  quick.a_factor = static_cast<float>(pairs.multiplies ? a_factor * pairs.b.scale : a_factor);
  quick.b_factor = static_cast<float>(pairs.multiplies ? 0 : b_factor);
  const double offset = pairs.multiplies ? 0 : -a_factor * pairs.a.zero - b_factor * pairs.b.zero;
  int unlike = 0;  // the byte for which an attempt failed; the next attempt tries it first
  constexpr double kStep = 0x1p-19;
  for (const int steps : {0, 1, -1, 2, -2, 4, -4, 8, -8}) {
    quick.offset = static_cast<float>(offset + steps * kStep);
    unlike = first_unlike(pairs, quick, unlike);
    if (unlike < 256) continue;
    pairs = quick;
    return true;
  }
  return false;
}

void fit(BytePairs& pairs) {
  if (pairs.b_is_float) return;
  const double reach = pairs.multiplies ? std::fabs(double{pairs.a.scale} * pairs.b.scale) * 255
                                        : std::fabs(double{pairs.a.scale}) + std::fabs(double{pairs.b.scale});
  constexpr double kMost = 1 << 20;  // up to so many levels, neither way overflows
  if (reach / pairs.y.scale * 255 > kMost || fit_quick(pairs)) return;
  BytePairs near = pairs;
  near.way = BytePairs::Way::kNear;
  if (first_unlike(pairs, near, 0) == 256) pairs = near;
}

#else

void fit(BytePairs& /*pairs*/) {}

#endif

}  // namespace

const BytePairKernels& byte_pair_kernels() {
  static constexpr BytePairKernels kKernels{run, fit, look_up};
  return kKernels;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
