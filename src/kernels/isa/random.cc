#include "kernels/random.h"

#include <cstring>

#include "kernels/elementwise_math.h"
#include "kernels/isa/vector.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// ---- The generator

constexpr int kBlocks = kFullLanes<uint64_t>;
constexpr int kGroupBlocks = 8;
constexpr int kRounds = 10;

// One word of each block, in the low half of a lane. The upper half is ignored.
using Words = Vec<uint64_t, kBlocks>;

TREADLE_ALWAYS_INLINE Words product(Words a, Words b) {
#if defined(__AVX512F__)
  return Words::of((Words::Native)_mm512_mul_epu32((__m512i)a.v, (__m512i)b.v));
#elif defined(__AVX2__)
  return Words::of((Words::Native)_mm256_mul_epu32((__m256i)a.v, (__m256i)b.v));
#elif defined(__SSE2__)
  return Words::of((Words::Native)_mm_mul_epu32((__m128i)a.v, (__m128i)b.v));
#else
  const Words low(0xFFFFFFFFu);
  return (a & low) * (b & low);
#endif
}

class Generator {
 public:
  explicit Generator(RandomKey key)
      : key0_(key.key & kLow), key1_(key.key >> 32), word2_(key.stream), word3_(key.stream >> 32) {
    for (int i = 0; i < kBlocks; ++i) steps_.v[i] = static_cast<uint64_t>(i);
  }

  // The words of kBlocks blocks, from block `index` on. `first`: words 0 (low) and 1 (high) of each block; `second`:
  // words 2 and 3.
  struct Halves {
    Words first, second;
  };
  TREADLE_ALWAYS_INLINE Halves blocks(uint64_t index) const {
    Words c0 = Words(index) + steps_, c1 = c0 >> 32, c2 = word2_, c3 = word3_;
    Words k0 = key0_, k1 = key1_;
    for (int round = 0; round < kRounds; ++round) {
      const Words a = product(c0, Words(0xD2511F53u)), b = product(c2, Words(0xCD9E8D57u));
      c0 = (b >> 32) ^ c1 ^ k0;
      c2 = (a >> 32) ^ c3 ^ k1;
      c1 = b;
      c3 = a;
      k0 = k0 + Words(0x9E3779B9u);
      k1 = k1 + Words(0xBB67AE85u);
    }
    const Words low(kLow);
    return {(c0 & low) | c1 << 32, (c2 & low) | c3 << 32};
  }

 private:
  static constexpr uint64_t kLow = 0xFFFFFFFFu;
  Words key0_, key1_, word2_, word3_, steps_;
};

// ---- From bits to numbers

template <class T>
using Lanes = Vec<T, kFullLanes<T>>;
template <class T>
using Bits = typename Lanes<T>::Bits;

template <class V>
struct Pair {
  V first, second;
};

template <class T>
TREADLE_ALWAYS_INLINE Bits<T> bits_of(Words words) {
  return Bits<T>::of(__builtin_bit_cast(typename Bits<T>::Native, words.v));
}

template <class T>
TREADLE_ALWAYS_INLINE Lanes<T> scaled(Lanes<T> z, const RandomScale<T>& to) {
  const Lanes<T> x = Lanes<T>(to.offset) + Lanes<T>(to.scale) * z, most(to.most);
  return select(x > most, most, x);
}

// As math::polynomial, but without fused operations.
template <class V, size_t kCount>
TREADLE_ALWAYS_INLINE V polynomial(V x, const typename V::Scalar (&coefficients)[kCount]) {
  V sum(coefficients[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = sum * x + V(coefficients[i]);
  return sum;
}

// Distributions take the logarithm of a uniform number with this many bits.
template <class T>
constexpr int kUnitBits = sizeof(T) == sizeof(float) ? 32 : 53;

template <class T>
TREADLE_ALWAYS_INLINE auto signed_lanes(Bits<T> x) {
  using V = Vec<typename SizedInt<sizeof(T)>::Signed, Lanes<T>::kLanes>;
  return V::of(__builtin_bit_cast(typename V::Native, x.v));
}

// Converts whole numbers below 2^31 (float) or 2^53 (double). AVX2 converts signed 32-bit numbers, and unsigned 64-bit
// numbers in fewer steps than signed ones.
template <class T>
TREADLE_ALWAYS_INLINE Lanes<T> to_float(Bits<T> x) {
  if constexpr (sizeof(T) == sizeof(float)) {
    return convert_lanes<T>(signed_lanes<T>(x));
  } else {
    return convert_lanes<T>(x);
  }
}

// -2 ln(u) for u = (x + 1/2) / 2^kUnitBits. All bits count for both small u and small 1 - u.
template <class T>
TREADLE_ALWAYS_INLINE Lanes<T> squared_radius(Bits<T> x) {
  using V = Lanes<T>;
  using B = Bits<T>;
  using C = math::Coefficients<T>;
  using L = math::FloatLayout<T>;
  using Word = typename L::Bits;
  constexpr T kUnit = T(1) / static_cast<T>(uint64_t{1} << kUnitBits<T>);
  constexpr Word kLargest = ~Word{0} >> (sizeof(Word) * 8 - kUnitBits<T>);
  constexpr Word kOne = L::kBias << L::kMantissaBits;
  constexpr Word kRootHalf = sizeof(T) == sizeof(float) ? Word(0x3f3504f3u) : Word(0x3fe6a09e667f3bcdull);
  // u = m 2^e with m in [sqrt(1/2), sqrt(2)), as in math::log.
  const B bits = to_bits(convert_lanes<T>(x) + V(T(0.5)));
  const B biased = (bits + B(kOne - kRootHalf)) >> L::kMantissaBits;
  const V m = from_bits_of<V>(bits - (biased << L::kMantissaBits) + B(kOne));
  const V magic(L::kRoundingMagic);
  const V e = from_bits_of<V>(to_bits(magic) + biased) - magic - V(T(L::kBias + kUnitBits<T>));
  const V below_one = (to_float<T>(B(kLargest) - x) + V(T(0.5))) * V(-kUnit);
  const V f = select(e == V(T(0)), below_one, m - V(T(1)));
  const V s = f / (V(T(2)) + f), z = s * s, half_square = V(T(0.5)) * f * f;
  const V tail = s * (half_square + z * polynomial(z, C::kLog));
  return V(T(-2)) * (e * V(C::kLn2High) + (f - (half_square - (tail + e * V(C::kLn2Low)))));
}

// An angle within an eighth of a turn of 0, made from all bits of x except the two highest.
template <class T>
TREADLE_ALWAYS_INLINE Lanes<T> eighth_turn(Bits<T> x) {
  using V = Lanes<T>;
  constexpr T kQuarterTurn = T(1.57079632679489661923);
  if constexpr (sizeof(T) == sizeof(float)) {
    return convert_lanes<T>(signed_lanes<T>(x << 2)) * V(kQuarterTurn * T(0x1p-32));
  } else {
    return (convert_lanes<T>((x << 2) >> 11) - V(T(0x1p52))) * V(kQuarterTurn * T(0x1p-53));
  }
}

// Two independent normal numbers made from uniform bits (Box and Muller). A sign and an exchange of coordinates put the
// point at the angle into one of the four quarters of the circle.
template <class T>
TREADLE_ALWAYS_INLINE Pair<Lanes<T>> normals(Bits<T> x, Bits<T> y) {
  using V = Lanes<T>;
  using B = Bits<T>;
  using C = math::Coefficients<T>;
  using Word = typename B::Scalar;
  constexpr int kTop = sizeof(Word) * 8 - 1;
  const V angle = eighth_turn<T>(y), z = angle * angle;
  const V sine = angle + angle * z * polynomial(z, C::kSin);
  const V cosine = (V(T(1)) - V(T(0.5)) * z) + z * z * polynomial(z, C::kCos);
  const V length = sqrt(squared_radius<T>(sizeof(T) == sizeof(float) ? x : x >> 11));
  const V radius = from_bits_of<V>(to_bits(length) | (y & B(Word{1} << kTop)));
  const auto exchanged = (y & B(Word{1} << (kTop - 1))) != B(Word{0});
  return {radius * select(exchanged, sine, cosine), radius * select(exchanged, cosine, sine)};
}

// ---- Rows

// Calls make(bits, bits), which gives a Pair of lanes, for all halves of groups.
template <class T, class Make>
TREADLE_ALWAYS_INLINE void make_row(RandomKey key, uint64_t first, T* out, size_t n, Make make) {
  constexpr size_t kHalf = kGroupBlocks * sizeof(uint64_t) / sizeof(T), kGroup = 2 * kHalf;
  static_assert(kRandomGroup % kGroup == 0);
  const Generator generator(key);
  uint64_t block = first / kGroup * kGroupBlocks;
  const auto make_group = [&](T* group, size_t wanted) {
    constexpr size_t kLanes = kFullLanes<T>;
    for (size_t at = 0; at < kHalf && at < wanted; at += kLanes) {
      const auto halves = generator.blocks(block + at * sizeof(T) / sizeof(uint64_t));
      const Pair<Lanes<T>> made = make(bits_of<T>(halves.first), bits_of<T>(halves.second));
      made.first.store(group + at);
      made.second.store(group + kHalf + at);
    }
    block += kGroupBlocks;
  };
  for (; n >= kGroup; n -= kGroup, out += kGroup) make_group(out, kGroup);
  if (n == 0) return;
  alignas(kVectorBytes) T group[kGroup]{};
  make_group(group, n);
  std::memcpy(out, group, n * sizeof(T));
}

template <class T>
void uniform(RandomKey key, uint64_t first, int bits, const RandomScale<T>& to, T* out, size_t n) {
  const int shift = static_cast<int>(sizeof(T) * 8) - bits;
  const auto make = [shift, to](Bits<T> x) { return scaled<T>(to_float<T>(x >> shift), to); };
  make_row(key, first, out, n, [make](Bits<T> x, Bits<T> y) -> Pair<Lanes<T>> { return {make(x), make(y)}; });
}

template <class T>
void normal(RandomKey key, uint64_t first, const RandomScale<T>& to, T* out, size_t n) {
  make_row(key, first, out, n, [to](Bits<T> x, Bits<T> y) -> Pair<Lanes<T>> {
    const Pair<Lanes<T>> z = normals<T>(x, y);
    return {scaled<T>(z.first, to), scaled<T>(z.second, to)};
  });
}

}  // namespace

const RandomKernels& random_kernels() {
  static constexpr RandomKernels kKernels{{uniform<float>, normal<float>}, {uniform<double>, normal<double>}};
  return kKernels;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
