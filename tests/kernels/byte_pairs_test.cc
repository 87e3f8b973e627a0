// Passes over bytes against their formulas, one step after the other, on every instruction set.
#include "kernels/byte_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <vector>

#include "kernels/kernel_test_util.h"
#include "kernels/quantize.h"

namespace treadle::kernels {
namespace {

class BytePairsTest : public EachIsa {
 protected:
  ByteScale scale() {
    std::uniform_real_distribution<float> exponent(-9, 2);
    const bool is_signed = random_() % 2 != 0;
    const auto level = static_cast<int32_t>(random_() % 256);
    return {std::exp2(exponent(random_)), is_signed ? level - 128 : level, is_signed};
  }
  std::vector<uint8_t> bytes(size_t n) {
    std::vector<uint8_t> drawn(n);
    for (uint8_t& b : drawn) b = static_cast<uint8_t>(random_());
    return drawn;
  }
};
TREADLE_EACH_ISA(BytePairsTest);

int32_t level_of(uint8_t byte, const ByteScale& s) {
  return s.is_signed ? static_cast<int8_t>(byte) : byte;
}

uint8_t quantized(float value, const ByteScale& s) {
  const float low = s.is_signed ? -128 : 0, high = s.is_signed ? 127 : 255;
  const float quotient = value / s.scale;
  const double level = std::isnan(quotient) ? low : std::nearbyint(quotient) + double{1} * s.zero;
  return static_cast<uint8_t>(static_cast<int32_t>(std::clamp<double>(level, low, high)));
}

uint8_t expected(const BytePairs& p, uint8_t a, uint8_t b) {
  const float left = static_cast<float>(level_of(a, p.a) - p.a.zero) * p.a.scale;
  const float right = static_cast<float>(level_of(b, p.b) - p.b.zero) * p.b.scale;
  return quantized(std::min(p.high, std::max(p.low, p.multiplies ? left * right : left + right)), p.y);
}

TEST_P(BytePairsTest, GiveWhatTheirStepsGive) {
  std::vector<uint8_t> a(256 * 256), b(a.size()), y(a.size());
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<uint8_t>(i), b[i] = static_cast<uint8_t>(i / 256);
  int quick = 0;
  for (int round = 0; round < 24; ++round) {
    BytePairs pairs{.multiplies = round % 2 != 0, .a = scale(), .b = scale(), .y = scale()};
    if (round % 3 == 0) pairs.low = 0;
    if (round % 4 == 0) pairs.high = 40 * pairs.y.scale;
    if (round % 8 == 2) pairs.b.scale = -pairs.b.scale;
    if (round % 8 == 4) pairs.b.scale = pairs.a.scale, pairs.y.scale = 2 * pairs.a.scale;  // halves occur everywhere
    for (const bool fits : {false, true}) {
      if (fits) byte_pair_kernels().fit(pairs);
      quick += fits && pairs.way != BytePairs::Way::kExact ? 1 : 0;
      byte_pair_kernels().run(pairs, a.data(), 1, b.data(), 1, y.data(), y.size());
      for (size_t i = 0; i < y.size(); ++i) {
        ASSERT_EQ(y[i], expected(pairs, a[i], b[i])) << "round " << round << ", bytes " << +a[i] << " and " << +b[i];
      }
    }
  }
  if (GetParam() != Isa::kBaseline) EXPECT_GT(quick, 0);
}

TEST_P(BytePairsTest, OfAnyLengthAndOfOneByte) {
  for (const size_t n : {1, 2, 15, 16, 31, 33, 64, 700, 1025}) {
    const BytePairs pairs{.multiplies = false, .a = scale(), .b = scale(), .y = scale()};
    const auto a = bytes(n), b = bytes(n);
    std::vector<uint8_t> y(n + 1, 77);
    for (const size_t step : {0, 1}) {
      byte_pair_kernels().run(pairs, a.data(), 1, b.data(), step, y.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], expected(pairs, a[i], b[i * step])) << n;
      byte_pair_kernels().run(pairs, b.data(), step, a.data(), 1, y.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], expected(pairs, b[i * step], a[i])) << n;
      ASSERT_EQ(y[n], 77);
    }
  }
}

TEST_P(BytePairsTest, LooksUp) {
  for (const size_t n : {0, 1, 7, 127, 128, 255, 256, 300, 1024}) {
    const auto table = bytes(256);
    std::vector<uint8_t> x(n), y(n + 1, 77);
    std::iota(x.begin(), x.end(), uint8_t{3});
    byte_pair_kernels().look_up(x.data(), table.data(), y.data(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], table[x[i]]);
    ASSERT_EQ(y[n], 77);
  }
}

// Instruction sets that multiply by 1 / scale in two steps give the same bits as the quotient.
TEST_P(BytePairsTest, QuotientsRoundAsDivisionsDo) {
  std::vector<float> x(4096);
  std::vector<uint8_t> y(x.size());
  std::uniform_real_distribution<float> level(-300, 300), exponent(-70, 70);
  for (int round = 0; round < 400; ++round) {
    ByteScale s = scale();
    s.scale = (round % 2 != 0 ? 1.f : -1.f) * std::exp2(round < 200 ? exponent(random_) : exponent(random_) / 16);
    if (round == 7) s.scale = 1;
    if (round == 8) s.scale = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      // Halves of the scale and their neighbours, where the last bit of a quotient decides.
      const float half = std::floor(level(random_)) + 0.5f;
      x[i] = i % 2 != 0 ? level(random_) * s.scale : half * s.scale;
      for (size_t steps = i % 5; steps-- > 0;) x[i] = std::nextafter(x[i], i % 3 != 0 ? 1e30f : -1e30f);
    }
    x[0] = NAN, x[1] = INFINITY, x[2] = -INFINITY, x[3] = 3e38f, x[4] = -3e38f, x[5] = 0, x[6] = 1e-40f;
    quantize_kernels().to_bytes(x.data(), s.scale, s.zero, s.is_signed, y.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], quantized(x[i], s)) << x[i] << " / " << s.scale;
  }
}

}  // namespace
}  // namespace treadle::kernels
