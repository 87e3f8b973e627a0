// Every instruction set against the generator and the transformation written down plainly, and the distributions.
#include "kernels/random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

using Block = std::array<uint32_t, 4>;

Block philox(RandomKey key, uint64_t index) {
  const auto low = [](uint64_t x) { return static_cast<uint32_t>(x); };
  const auto high = [](uint64_t x) { return static_cast<uint32_t>(x >> 32); };
  Block c{low(index), high(index), low(key.stream), high(key.stream)};
  uint32_t k0 = low(key.key), k1 = high(key.key);
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c[0], b = uint64_t{0xCD9E8D57u} * c[2];
    c = {high(b) ^ c[1] ^ k0, low(b), high(a) ^ c[3] ^ k1, low(a)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

// The bits from which element i is made.
template <class T>
uint64_t element_bits(RandomKey key, uint64_t i) {
  if constexpr (sizeof(T) == 4) {
    return philox(key, i / 32 * 8 + i % 16 / 2)[i % 32 / 16 * 2 + i % 2];
  } else {
    const Block block = philox(key, i / 16 * 8 + i % 8);
    const size_t half = i % 16 / 8 * 2;
    return uint64_t{block[half + 1]} << 32 | block[half];
  }
}

constexpr RandomKey kKey{0x0123456789abcdef, 0x1122334455667788};
template <class T>
constexpr int kUniformBits = sizeof(T) == 4 ? 24 : 53;
template <class T>
RandomScale<T> unit() {
  return {.scale = std::ldexp(T(1), -kUniformBits<T>)};
}

template <class T>
std::vector<T> uniforms(size_t n, RandomKey key = kKey, uint64_t first = 0) {
  std::vector<T> made(n);
  random_kernels().rows<T>().uniform(key, first, kUniformBits<T>, unit<T>(), made.data(), n);
  return made;
}
template <class T>
std::vector<T> normals(size_t n, RandomKey key = kKey, uint64_t first = 0) {
  std::vector<T> made(n);
  random_kernels().rows<T>().normal(key, first, {}, made.data(), n);
  return made;
}

// The known answers that the authors of the generator publish.
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(philox({0, 0}, 0), (Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr uint64_t kOnes = ~uint64_t{0};
  EXPECT_EQ(philox({kOnes, kOnes}, kOnes), (Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x299f31d0a4093822, 0x0370734413198a2e}, 0x85a308d3243f6a88),
            (Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

template <class T>
void expect_uniform_bits() {
  for (const size_t n : {0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 100}) {
    for (const uint64_t first : {uint64_t{0}, uint64_t{64}, uint64_t{1} << 36}) {
      const std::vector<T> made = uniforms<T>(n, kKey, first);
      for (size_t i = 0; i < n; ++i) {
        const uint64_t bits = element_bits<T>(kKey, first + i) >> (sizeof(T) * 8 - kUniformBits<T>);
        ASSERT_EQ(made[i], std::ldexp(static_cast<T>(bits), -kUniformBits<T>)) << first << " + " << i << " of " << n;
      }
    }
  }
}

// Box and Muller's formula in double, with functions of the C++ library.
template <class T>
double expected_normal(uint64_t i) {
  constexpr uint64_t kHalf = 64 / sizeof(T);
  constexpr int kBits = sizeof(T) * 8, kUnitBits = sizeof(T) == 4 ? 32 : 53;
  const uint64_t at = i / (2 * kHalf) * 2 * kHalf + i % kHalf;
  const uint64_t x = element_bits<T>(kKey, at) >> (kBits - kUnitBits), y = element_bits<T>(kKey, at + kHalf);
  const auto u = (static_cast<long double>(x) + 0.5L) * std::ldexp(1.0L, -kUnitBits);
  const auto radius = static_cast<double>(std::sqrt(-2 * std::log(u)));
  const uint64_t rest = y << (66 - kBits);  // without the two highest bits, as the highest of 64
  const double turn = sizeof(T) == 4 ? static_cast<double>(static_cast<int64_t>(rest)) * 0x1p-64
                                     : (static_cast<double>(rest >> 11) - 0x1p52) * 0x1p-53;
  const double angle = turn * std::numbers::pi / 2;
  const bool negative = y >> (kBits - 1) & 1, exchanged = y >> (kBits - 2) & 1, second = i % (2 * kHalf) >= kHalf;
  const double z = radius * (exchanged == second ? std::cos(angle) : std::sin(angle));
  return negative ? -z : z;
}

template <class T>
void expect_normals_near_the_formula() {
  const std::vector<T> made = normals<T>(4000);
  for (size_t i = 0; i < made.size(); ++i) {
    const double expected = expected_normal<T>(i);
    const double bound = 6 * std::numeric_limits<T>::epsilon() * std::abs(expected);
    ASSERT_NEAR(static_cast<double>(made[i]), expected, bound) << i;
  }
}

class Random : public EachIsa {};

TEST_P(Random, UniformNumbersAreTheGeneratorsBits) {
  expect_uniform_bits<float>();
  expect_uniform_bits<double>();
}

TEST_P(Random, NormalNumbersLieNearTheFormula) {
  expect_normals_near_the_formula<float>();
  expect_normals_near_the_formula<double>();
}

TEST_P(Random, NormalNumbersHaveTheBitsOfEveryInstructionSet) {
  for (const size_t n : {1, 7, 32, 33, 10007}) {
    const auto floats = normals<float>(n);
    const auto doubles = normals<double>(n);
    const ScopedIsa baseline(Isa::kBaseline);
    EXPECT_EQ(floats, normals<float>(n));
    EXPECT_EQ(doubles, normals<double>(n));
  }
}

// On every machine and by every compiler.
TEST_P(Random, NormalNumbersHaveKnownBits) {
  const auto floats = normals<float>(32);
  const auto doubles = normals<double>(16);
  EXPECT_EQ(std::bit_cast<uint32_t>(floats[0]), 3210409949u);
  EXPECT_EQ(std::bit_cast<uint32_t>(floats[31]), 3165935569u);
  EXPECT_EQ(std::bit_cast<uint64_t>(doubles[0]), 4607793031225444045u);
  EXPECT_EQ(std::bit_cast<uint64_t>(doubles[15]), 4589929645956375122u);
}

TEST_P(Random, PartsAreThoseOfTheWhole) {
  const auto whole = normals<float>(1000);
  for (const size_t first : {32, 320, 960}) {
    const auto part = normals<float>(1000 - first, kKey, first);
    EXPECT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<ptrdiff_t>(first))) << first;
  }
}

TEST_P(Random, NumbersAreScaledAndBounded) {
  std::vector<float> made(1000);
  random_kernels().f32.uniform(kKey, 0, 11, {1, 0x1p-10f, 2.5f}, made.data(), made.size());
  EXPECT_EQ(*std::max_element(made.begin(), made.end()), 2.5f);
  for (const float x : made) {
    EXPECT_TRUE(x >= 1 && x <= 2.5f);
    EXPECT_EQ(x * 1024, std::floor(x * 1024));
  }
}

// ---- Distributions, of one key, at bounds that a right generator misses once in ten thousand keys or less

constexpr size_t kMany = 1 << 20;

double normal_cdf(double z) {
  return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

// Kolmogorov's distance from the uniform distribution on [0, 1], times the root of the count.
double distance_from_uniform(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  const auto n = static_cast<double>(x.size());
  double largest = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const auto before = static_cast<double>(i);
    largest = std::max({largest, x[i] - before / n, (before + 1) / n - x[i]});
  }
  return largest * std::sqrt(n);
}

double mean(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v;
  return sum / static_cast<double>(x.size());
}

// The correlation of elements `lag` apart, for a sequence with mean 0, times the root of the count.
double correlation(const std::vector<double>& x, size_t lag) {
  double products = 0, squares = 0;
  for (size_t i = 0; i + lag < x.size(); ++i) products += x[i] * x[i + lag], squares += x[i] * x[i];
  return products / squares * std::sqrt(static_cast<double>(x.size() - lag));
}

// Neighbours, words of one block, the two numbers of a pair, groups.
void expect_independent(const std::vector<double>& x) {
  for (const size_t lag : {1, 2, 3, 8, 15, 16, 17, 31, 32, 64, 512}) EXPECT_LT(std::abs(correlation(x, lag)), 4) << lag;
}

std::vector<double> centred_squares(std::vector<double> x, double variance) {
  for (double& v : x) v = v * v - variance;
  return x;
}

template <class T>
void expect_uniform_distribution() {
  const std::vector<T> made = uniforms<T>(kMany);
  std::vector<double> x(made.begin(), made.end());
  EXPECT_TRUE(*std::min_element(x.begin(), x.end()) >= 0 && *std::max_element(x.begin(), x.end()) < 1);
  EXPECT_LT(distance_from_uniform(x), 2.2);
  for (double& v : x) v -= 0.5;
  const double root = std::sqrt(static_cast<double>(kMany));
  EXPECT_LT(std::abs(mean(x)) * root, 4 / std::sqrt(12.0));
  EXPECT_LT(std::abs(mean(centred_squares(x, 1 / 12.0))) * root, 4 / std::sqrt(180.0));
  expect_independent(x);
}

template <class T>
void expect_normal_distribution() {
  const std::vector<T> made = normals<T>(kMany);
  const std::vector<double> z(made.begin(), made.end());
  std::vector<double> levels(z);
  for (double& v : levels) v = normal_cdf(v);
  EXPECT_LT(distance_from_uniform(levels), 2.2);
  const double root = std::sqrt(static_cast<double>(kMany));
  EXPECT_LT(std::abs(mean(z)) * root, 4);
  EXPECT_LT(std::abs(mean(centred_squares(z, 1))) * root, 4 * std::numbers::sqrt2);
  expect_independent(z);
  expect_independent(centred_squares(z, 1));
}

TEST(RandomNumbers, UniformNumbersAreEvenlySpread) {
  expect_uniform_distribution<float>();
  expect_uniform_distribution<double>();
}

TEST(RandomNumbers, NormalNumbersAreNormal) {
  expect_normal_distribution<float>();
  expect_normal_distribution<double>();
}

template <class T>
void expect_normal_tails() {
  constexpr size_t kRows = 32;
  double beyond_4 = 0, beyond_5 = 0, above_4 = 0;
  for (size_t row = 0; row < kRows; ++row) {
    for (const T z : normals<T>(kMany, {kKey.key, row})) {
      beyond_4 += std::abs(z) > 4;
      beyond_5 += std::abs(z) > 5;
      above_4 += z > 4;
    }
  }
  const double n = static_cast<double>(kMany * kRows);
  const double expected_4 = 2 * n * normal_cdf(-4), expected_5 = 2 * n * normal_cdf(-5);  // 2125 and 19
  EXPECT_NEAR(beyond_4, expected_4, 4 * std::sqrt(expected_4));
  EXPECT_NEAR(beyond_5, expected_5, 4 * std::sqrt(expected_5));
  EXPECT_NEAR(above_4, expected_4 / 2, 4 * std::sqrt(expected_4 / 2));
}

TEST(RandomNumbers, NormalNumbersHaveTheirTails) {
  expect_normal_tails<float>();
  expect_normal_tails<double>();
}

TEST(RandomNumbers, DoNotRepeatWithinOrAmongStreams) {
  std::vector<double> made;
  for (uint64_t stream = 0; stream < 16; ++stream) {
    for (const uint64_t key : {1, 2}) {
      const auto part = uniforms<double>(1 << 14, {key, stream});
      made.insert(made.end(), part.begin(), part.end());
    }
  }
  std::sort(made.begin(), made.end());
  EXPECT_EQ(std::adjacent_find(made.begin(), made.end()), made.end());  // 2^19 of 2^53: by chance 1 in 65,000
}

TREADLE_EACH_ISA(Random);

}  // namespace
}  // namespace treadle::kernels
