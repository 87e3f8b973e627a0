// Softmax and normalisation of rows against their definitions.

#include "kernels/normalize.h"

#include <algorithm>
#include <array>

#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "tests/kernels/rows.h"

namespace treadle::kernels::testing {
namespace {

using Type = ElementType;

class NormalizeTest : public ::testing::TestWithParam<Isa> {
 protected:
  NormalizeTest() : scope_(GetParam()) {}

 private:
  ScopedIsa scope_;
};
INSTANTIATE_TEST_SUITE_P(, NormalizeTest, ::testing::ValuesIn(usable_isas()), isa_name);

double tolerance(Type type) {
  return type == Type::kDouble ? 1e-14 : type == Type::kFloat ? 1e-6 : type == Type::kFloat16 ? 1e-3 : 8e-3;
}

std::vector<double> random_values(size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> x(count);
  for (double& v : x) v = std::uniform_real_distribution<double>(-6, 6)(random);
  return x;
}

// The values as stored in `type`, and the bytes.
struct Stored {
  Stored(Type type, const std::vector<double>& x) : bytes(x.size() * 8), values(x.size()) {
    cast(Type::kDouble, type, x.data(), bytes.data(), x.size());
    cast(type, Type::kDouble, bytes.data(), values.data(), x.size());
  }
  std::vector<std::byte> bytes;
  std::vector<double> values;
};

std::vector<double> read(Type type, const std::vector<std::byte>& bytes, size_t count) {
  std::vector<double> x(count);
  cast(type, Type::kDouble, bytes.data(), x.data(), count);
  return x;
}

TEST_P(NormalizeTest, Softmax) {
  for (Type type : {Type::kFloat, Type::kDouble, Type::kFloat16, Type::kBfloat16}) {
    for (auto [outer, n, inner] : {std::array<size_t, 3>{1, 1, 1}, {3, 7, 1}, {2, 1300, 1}, {2, 5, 3}, {1, 9, 300}}) {
      const Stored x(type, random_values(outer * n * inner, 5));
      for (SoftmaxKind kind : {SoftmaxKind::kSoftmax, SoftmaxKind::kLogSoftmax}) {
        std::vector<std::byte> y(x.bytes.size());
        softmax(kind, type, x.bytes.data(), y.data(), outer, n, inner);
        const std::vector<double> result = read(type, y, x.values.size());
        for (size_t o = 0; o < outer; ++o) {
          for (size_t c = 0; c < inner; ++c) {
            const auto at = [&](size_t i) { return (o * n + i) * inner + c; };
            double sum = 0;
            for (size_t i = 0; i < n; ++i) sum += std::exp(x.values[at(i)]);
            for (size_t i = 0; i < n; ++i) {
              const double p = std::exp(x.values[at(i)]) / sum;
              const bool log = kind == SoftmaxKind::kLogSoftmax;
              const double expected = log ? std::log(p) : p;
              ASSERT_NEAR(result[at(i)], expected, tolerance(type) * (log ? 10 : 1)) << name(type) << " n " << n;
            }
          }
        }
        std::vector<std::byte> in_place = x.bytes;
        softmax(kind, type, in_place.data(), in_place.data(), outer, n, inner);
        ASSERT_EQ(std::memcmp(in_place.data(), y.data(), x.values.size() * byte_width(type)), 0);
      }
    }
  }
}

TEST_P(NormalizeTest, SoftmaxOfLargeValues) {
  const float x[] = {1000, 1000, -1000, -INFINITY};
  float y[4];
  softmax(SoftmaxKind::kSoftmax, Type::kFloat, x, y, 1, 4, 1);
  EXPECT_EQ(y[0], 0.5f);
  EXPECT_EQ(y[2], 0);
  EXPECT_EQ(y[3], 0);
}

void check_rows(NormKind kind, Type type, Type scale_type, bool with_scale, bool with_bias, size_t n) {
  const size_t rows = 3;
  const Stored x(type, random_values(rows * n, 5));
  const Stored scale(scale_type, random_values(n, 6));
  const Stored bias(scale_type, random_values(n, 7));
  NormRows norm;
  norm.kind = kind;
  norm.type = type;
  norm.scale_type = scale_type;
  norm.rows = rows;
  norm.n = n;
  norm.epsilon = 1e-3;
  std::vector<std::byte> y(rows * n * 8), mean(rows * 8), inv_std(rows * 8);
  norm(x.bytes.data(), with_scale ? scale.bytes.data() : nullptr, with_bias ? bias.bytes.data() : nullptr, y.data(),
       mean.data(), inv_std.data());
  const std::vector<double> result = read(scale_type, y, rows * n);
  const Type stash = type == Type::kDouble ? Type::kDouble : Type::kFloat;
  const std::vector<double> means = read(stash, mean, rows);
  const std::vector<double> inv_stds = read(stash, inv_std, rows);
  for (size_t r = 0; r < rows; ++r) {
    double average = 0;
    for (size_t i = 0; i < n && kind == NormKind::kLayer; ++i) average += x.values[r * n + i] / static_cast<double>(n);
    double variance = 0;
    for (size_t i = 0; i < n; ++i) variance += std::pow(x.values[r * n + i] - average, 2) / static_cast<double>(n);
    const double factor = 1 / std::sqrt(variance + 1e-3);
    ASSERT_NEAR(means[r], average, 1e-5);
    ASSERT_NEAR(inv_stds[r], factor, 1e-5 * factor);
    for (size_t i = 0; i < n; ++i) {
      const double expected = (x.values[r * n + i] - average) * factor * (with_scale ? scale.values[i] : 1) +
                              (with_bias ? bias.values[i] : 0);
      ASSERT_NEAR(result[r * n + i], expected, 40 * tolerance(scale_type))
          << name(type) << " " << name(scale_type) << " " << n;
    }
  }
}

TEST_P(NormalizeTest, Rows) {
  for (NormKind kind : {NormKind::kLayer, NormKind::kRms}) {
    for (auto [type, scale_type] : {std::pair{Type::kFloat, Type::kFloat},
                                    {Type::kDouble, Type::kDouble},
                                    {Type::kFloat16, Type::kFloat16},
                                    {Type::kBfloat16, Type::kBfloat16},
                                    {Type::kFloat16, Type::kFloat},
                                    {Type::kFloat, Type::kFloat16}}) {
      for (size_t n : {size_t{1}, size_t{8}, size_t{37}, size_t{1100}}) {
        check_rows(kind, type, scale_type, true, true, n);
        check_rows(kind, type, scale_type, true, false, n);
        check_rows(kind, type, scale_type, false, false, n);
      }
    }
  }
}

}  // namespace
}  // namespace treadle::kernels::testing
