#include "kernels/random.h"

#include <cstring>

#include "kernels/isa/vector.h"
#include "kernels/random_maths.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// For random_maths.h.
template <class V, class B>
TREADLE_ALWAYS_INLINE V number_of(B x) {
  return convert_lanes<typename V::Scalar>(x);
}
template <class V, class B>
TREADLE_ALWAYS_INLINE V signed_number_of(B x) {
  using S = Vec<typename SizedInt<sizeof(typename V::Scalar)>::Signed, V::kLanes>;
  return convert_lanes<typename V::Scalar>(S::of(__builtin_bit_cast(typename S::Native, x.v)));
}

namespace {

template <class V>
using Pair = random_maths::Pair<V>;

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

template <class T>
TREADLE_ALWAYS_INLINE Bits<T> bits_of(Words words) {
  return Bits<T>::of(__builtin_bit_cast(typename Bits<T>::Native, words.v));
}

template <class T>
TREADLE_ALWAYS_INLINE Lanes<T> scaled(Lanes<T> z, const RandomScale<T>& to) {
  const Lanes<T> x = Lanes<T>(to.offset) + Lanes<T>(to.scale) * z, most(to.most);
  return select(x > most, most, x);
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
  const auto make = [shift, to](Bits<T> x) {
    return scaled<T>(random_maths::small_number_of<Lanes<T>>(x >> shift), to);
  };
  make_row(key, first, out, n, [make](Bits<T> x, Bits<T> y) -> Pair<Lanes<T>> { return {make(x), make(y)}; });
}

template <class T>
void normal(RandomKey key, uint64_t first, const RandomScale<T>& to, T* out, size_t n) {
  make_row(key, first, out, n, [to](Bits<T> x, Bits<T> y) -> Pair<Lanes<T>> {
    const Pair<Lanes<T>> z = random_maths::normals<Lanes<T>>(x, y);
    return {scaled<T>(z.first, to), scaled<T>(z.second, to)};
  });
}

}  // namespace

const RandomKernels& random_kernels() {
  static constexpr RandomKernels kKernels{{uniform<float>, normal<float>}, {uniform<double>, normal<double>}};
  return kKernels;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
