// Statistics of tensors: each type, length and position against plain loops over doubles.
#include "kernels/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "kernels/convert.h"
#include "kernels/dispatch.h"

namespace treadle::kernels {
namespace {

Statistics by_loop(const std::vector<double>& numbers, double normal) {
  Statistics s;
  for (const double x : numbers) {
    ++s.count;
    if (std::isnan(x)) {
      ++s.nan;
      continue;
    }
    s.low = std::min(s.low, x);
    s.high = std::max(s.high, x);
    s.infinite += std::isinf(x);
    s.zero += x == 0;
    s.denormal += x != 0 && std::fabs(x) < normal;
    if (std::isinf(x)) continue;
    s.sum += x;
    s.squares += x * x;
  }
  return s;
}

void expect_same(const Statistics& found, const Statistics& expected, double digits) {
  EXPECT_EQ(found.count, expected.count);
  EXPECT_EQ(found.nan, expected.nan);
  EXPECT_EQ(found.infinite, expected.infinite);
  EXPECT_EQ(found.zero, expected.zero);
  EXPECT_EQ(found.denormal, expected.denormal);
  EXPECT_EQ(found.low, expected.low);
  EXPECT_EQ(found.high, expected.high);
  EXPECT_NEAR(found.sum, expected.sum,
              digits * (std::sqrt(expected.squares * static_cast<double>(expected.count)) + 1e-30));
  EXPECT_NEAR(found.squares, expected.squares, digits * expected.squares);
}

// Numbers of all sizes, and the special ones now and then.
std::vector<double> drawn(std::mt19937& random, int64_t count, bool specials) {
  std::vector<double> numbers(static_cast<size_t>(count));
  const double special[] = {0.0, -0.0, NAN, INFINITY, -INFINITY, 1e-39, -1e-41, 1e-310, 2e-7};
  for (double& x : numbers) {
    x = std::ldexp(std::uniform_real_distribution(-1.0, 1.0)(random), static_cast<int>(random() % 12) - 6);
    if (specials && random() % 4 == 0) x = special[random() % std::size(special)];
  }
  return numbers;
}

TEST(Statistics, AreThoseOfPlainLoops) {
  const ElementType types[] = {ElementType::kFloat,    ElementType::kDouble,       ElementType::kFloat16,
                               ElementType::kBfloat16, ElementType::kFloat8e4m3fn, ElementType::kInt8,
                               ElementType::kUint8,    ElementType::kInt32,        ElementType::kInt64,
                               ElementType::kUint64,   ElementType::kBool};
  for (const Isa isa : usable_isas()) {
    SCOPED_TRACE(name(isa));
    const ScopedIsa scope(isa);
    std::mt19937 random(1);
    for (const ElementType type : types) {
      SCOPED_TRACE(name(type));
      const bool is_float = least_normal(type) > 0;
      for (const int64_t count : {0, 1, 2, 7, 8, 15, 16, 17, 31, 33, 64, 511, 513, 4095, 4097, 20000}) {
        SCOPED_TRACE(count);
        std::vector<double> numbers = drawn(random, count, is_float);
        if (!is_float) {
          for (double& x : numbers) x = std::floor(std::fabs(x));
        }
        const size_t width = byte_width(type), offset = random() % 16;
        std::vector<std::byte> memory(offset + width * numbers.size());
        std::byte* const at = memory.data() + offset;
        std::vector<std::byte> aligned(width * numbers.size() + 1);
        cast(ElementType::kDouble, type, numbers.data(), aligned.data(), numbers.size());
        if (!numbers.empty()) std::memcpy(at, aligned.data(), width * numbers.size());
        cast(type, ElementType::kDouble, aligned.data(), numbers.data(), numbers.size());
        expect_same(statistics_of(type, at, count), by_loop(numbers, least_normal(type)),
                    type == ElementType::kFloat ? 1e-4 : 1e-9);
      }
    }
  }
}

TEST(Statistics, OfFloatsWhoseSquaresLeaveTheirRange) {
  for (const Isa isa : usable_isas()) {
    const ScopedIsa scope(isa);
    for (const float size : {3e38f, 1e30f, 1e-30f, 1e-44f}) {
      const std::vector<float> x(100, size);
      const Statistics s = statistics_of(ElementType::kFloat, x.data(), 100);
      const auto wide = static_cast<double>(size);
      EXPECT_NEAR(s.norm(), 10 * wide, 1e-5 * wide);
      EXPECT_NEAR(s.mean(), wide, 1e-5 * wide);
    }
  }
}

TEST(Statistics, OfComplexNumbersAreThoseOfTheirParts) {
  const float parts[] = {1, -2, NAN, 0, INFINITY, 3};
  const Statistics s = statistics_of(ElementType::kComplex64, parts, 3);
  EXPECT_EQ(s.count, 6);
  EXPECT_EQ(s.nan, 1);
  EXPECT_EQ(s.infinite, 1);
  EXPECT_EQ(s.zero, 1);
  EXPECT_EQ(s.low, -2);
  EXPECT_EQ(s.mean(), 0.5);
}

TEST(Statistics, AddUp) {
  const float x[] = {1, 2, NAN, -5};
  Statistics both = statistics_of(ElementType::kFloat, x, 2);
  both.add(statistics_of(ElementType::kFloat, x + 2, 2));
  expect_same(both, statistics_of(ElementType::kFloat, x, 4), 1e-12);
  EXPECT_TRUE(std::isnan(Statistics().mean()));
  EXPECT_EQ(Statistics().norm(), 0);
  EXPECT_FALSE(has_statistics(ElementType::kString));
}

}  // namespace
}  // namespace treadle::kernels
