// Reductions, extremes and running sums against plain loops.

#include "kernels/reduce.h"

#include <algorithm>
#include <array>

#include "kernels/convert.h"
#include "kernels/dispatch.h"
#include "tests/kernels/rows.h"

namespace treadle::kernels::testing {
namespace {

using Type = ElementType;
using Wide = long double;

class ReduceTest : public ::testing::TestWithParam<Isa> {
 protected:
  ReduceTest() : scope_(GetParam()) {}

 private:
  ScopedIsa scope_;
};
INSTANTIATE_TEST_SUITE_P(, ReduceTest, ::testing::ValuesIn(usable_isas()), isa_name);

constexpr ReduceOp kOps[] = {ReduceOp::kSum,       ReduceOp::kMean,     ReduceOp::kMax, ReduceOp::kMin,
                             ReduceOp::kProd,      ReduceOp::kL1,       ReduceOp::kL2,  ReduceOp::kLogSum,
                             ReduceOp::kLogSumExp, ReduceOp::kSumSquare};

Wide reference(ReduceOp op, const std::vector<Wide>& x) {
  Wide sum = 0, squares = 0, product = 1, absolute = 0, exps = 0;
  Wide largest = -INFINITY, smallest = INFINITY;
  for (Wide v : x) {
    sum += v;
    squares += v * v;
    product *= v;
    absolute += fabsl(v);
    exps += expl(v);
    largest = std::max(largest, v);
    smallest = std::min(smallest, v);
  }
  switch (op) {
    case ReduceOp::kSum:
      return sum;
    case ReduceOp::kMean:
      return sum / static_cast<Wide>(x.size());
    case ReduceOp::kMax:
      return largest;
    case ReduceOp::kMin:
      return smallest;
    case ReduceOp::kProd:
      return product;
    case ReduceOp::kL1:
      return absolute;
    case ReduceOp::kL2:
      return sqrtl(squares);
    case ReduceOp::kLogSum:
      return logl(sum);
    case ReduceOp::kLogSumExp:
      return logl(exps);
    case ReduceOp::kSumSquare:
      return squares;
  }
  return 0;
}

struct Shape {
  std::vector<int64_t> dims;
  std::vector<uint8_t> reduced;
};

const Shape kShapes[] = {
    {{}, {}},
    {{1}, {1}},
    {{7}, {1}},
    {{1500}, {1}},
    {{3, 5}, {0, 1}},
    {{3, 5}, {1, 0}},
    {{3, 5}, {0, 0}},
    {{3, 5}, {1, 1}},
    {{2, 700, 3}, {0, 1, 0}},
    {{2, 33, 140}, {0, 1, 0}},
    {{4, 3, 5}, {1, 0, 1}},
    {{4, 3, 5}, {0, 1, 0}},
    {{2, 3, 4, 5}, {1, 0, 1, 0}},
    {{2, 3, 4, 5, 2}, {0, 1, 0, 1, 0}},
    {{2, 3, 4, 5, 2}, {1, 0, 1, 0, 1}},
    {{2, 1, 3, 1}, {0, 1, 1, 0}},
};

// Elements of every output, by walking the whole input.
std::vector<std::vector<Wide>> groups(const Shape& shape, const std::vector<Wide>& x) {
  size_t outputs = 1;
  for (size_t d = 0; d < shape.dims.size(); ++d) {
    if (!shape.reduced[d]) outputs *= static_cast<size_t>(shape.dims[d]);
  }
  std::vector<std::vector<Wide>> all(outputs);
  for (size_t i = 0; i < x.size(); ++i) {
    size_t rest = i;
    size_t to = 0;
    size_t scale = 1;
    for (size_t d = shape.dims.size(); d-- > 0;) {
      const size_t index = rest % static_cast<size_t>(shape.dims[d]);
      rest /= static_cast<size_t>(shape.dims[d]);
      if (shape.reduced[d]) continue;
      to += index * scale;
      scale *= static_cast<size_t>(shape.dims[d]);
    }
    all[to].push_back(x[i]);
  }
  return all;
}

double tolerance(Type type) {
  switch (type) {
    case Type::kDouble:
      return 1e-13;
    case Type::kFloat:
      return 2e-6;
    case Type::kFloat16:
      return 1e-3;
    case Type::kBfloat16:
      return 8e-3;
    default:
      return 0;
  }
}

void check_reduction(ReduceOp op, Type type, const Shape& shape, std::mt19937_64& random) {
  size_t count = 1;
  for (int64_t d : shape.dims) count *= static_cast<size_t>(d);
  std::vector<double> values(count);
  for (double& v : values) {
    // Products near 1; integers small, so that nothing wraps.
    if (is_float(type)) {
      v = op == ReduceOp::kProd ? 1 + (static_cast<double>(random() % 201) - 100) / 10000
                                : static_cast<double>(random() % 1000) / 250;
    } else {
      v = static_cast<double>(op == ReduceOp::kProd ? 1 + (random() % 50 == 0) : random() % 4);
    }
    if (type == Type::kBool) v = random() % 2;
    if (is_signed_integer(type) && op == ReduceOp::kL1) v = -v;
  }
  std::vector<std::byte> x(count * 8);
  cast(Type::kDouble, type, values.data(), x.data(), count);
  std::vector<double> stored(count);
  cast(type, Type::kDouble, x.data(), stored.data(), count);

  bool reduced[8] = {};
  std::copy(shape.reduced.begin(), shape.reduced.end(), reduced);
  ReducePlan plan;
  const Status status = prepare_reduce(&plan, op, type, shape.dims, std::span(reduced, shape.dims.size()));
  ASSERT_TRUE(status.ok()) << status.to_string();
  const auto expected = groups(shape, std::vector<Wide>(stored.begin(), stored.end()));
  ASSERT_EQ(plan.outputs, expected.size());
  std::vector<std::byte> y(expected.size() * 8);
  plan(x.data(), y.data());
  std::vector<double> result(expected.size());
  cast(type, Type::kDouble, y.data(), result.data(), result.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    double exact = static_cast<double>(reference(op, expected[i]));
    if (is_float(type)) {
      if (std::isinf(exact) && std::isinf(result[i])) continue;
      const double scale = std::max({std::fabs(exact), 1.0});
      ASSERT_NEAR(result[i], exact, tolerance(type) * scale)
          << static_cast<int>(op) << " " << name(type) << " output " << i;
    } else {
      if (std::isinf(exact)) continue;  // the logarithm of zero has no integer
      const double truncated = std::trunc(exact);
      const bool rounded = op == ReduceOp::kLogSumExp || op == ReduceOp::kLogSum;
      if (rounded && std::fabs(exact - std::round(exact)) < 1e-9) continue;
      // Narrow integers wrap, like their other results.
      std::byte wrapped[8];
      double back;
      cast(Type::kDouble, type, &truncated, wrapped, 1);
      cast(type, Type::kDouble, wrapped, &back, 1);
      ASSERT_EQ(result[i], back) << static_cast<int>(op) << " " << name(type) << " output " << i;
    }
  }
}

TEST_P(ReduceTest, EveryOperationTypeAndShape) {
  std::mt19937_64 random(3);
  for (Type type : {Type::kFloat, Type::kDouble, Type::kFloat16, Type::kBfloat16, Type::kInt32, Type::kInt64,
                    Type::kUint32, Type::kUint64, Type::kInt8, Type::kUint8, Type::kBool}) {
    for (ReduceOp op : kOps) {
      if (!has_reduce(op, type)) continue;
      for (const Shape& shape : kShapes) check_reduction(op, type, shape, random);
    }
  }
}

template <class T>
T reduce_all(ReduceOp op, Type type, const std::vector<T>& x) {
  const int64_t dims[] = {static_cast<int64_t>(x.size())};
  const bool reduced[] = {true};
  ReducePlan plan;
  EXPECT_TRUE(prepare_reduce(&plan, op, type, dims, reduced).ok());
  T y;
  plan(x.data(), &y);
  return y;
}

TEST_P(ReduceTest, SpecialValues) {
  for (size_t n : {size_t{1}, size_t{5}, size_t{16}, size_t{77}, size_t{2000}}) {
    for (size_t at : {size_t{0}, n / 2, n - 1}) {
      std::vector<float> x(n, 1.0f);
      x[at] = NAN;
      EXPECT_TRUE(std::isnan(reduce_all(ReduceOp::kMax, Type::kFloat, x))) << n << " " << at;
      EXPECT_TRUE(std::isnan(reduce_all(ReduceOp::kMin, Type::kFloat, x))) << n << " " << at;
      EXPECT_TRUE(std::isnan(reduce_all(ReduceOp::kSum, Type::kFloat, x)));
      x[at] = 1000;
      EXPECT_FLOAT_EQ(reduce_all(ReduceOp::kLogSumExp, Type::kFloat, x), 1000);
      x[at] = -INFINITY;
      EXPECT_EQ(reduce_all(ReduceOp::kMin, Type::kFloat, x), -INFINITY);
      x[at] = INFINITY;
      EXPECT_EQ(reduce_all(ReduceOp::kLogSumExp, Type::kFloat, x), INFINITY);
    }
    EXPECT_EQ(reduce_all(ReduceOp::kLogSumExp, Type::kFloat, std::vector<float>(n, -INFINITY)), -INFINITY);
  }
}

TEST_P(ReduceTest, OfNothing) {
  EXPECT_EQ(reduce_all<float>(ReduceOp::kSum, Type::kFloat, {}), 0);
  EXPECT_EQ(reduce_all<float>(ReduceOp::kProd, Type::kFloat, {}), 1);
  EXPECT_EQ(reduce_all<float>(ReduceOp::kMax, Type::kFloat, {}), -INFINITY);
  EXPECT_EQ(reduce_all<float>(ReduceOp::kMin, Type::kFloat, {}), INFINITY);
  EXPECT_TRUE(std::isnan(reduce_all<float>(ReduceOp::kMean, Type::kFloat, {})));
  EXPECT_EQ(reduce_all<float>(ReduceOp::kLogSumExp, Type::kFloat, {}), -INFINITY);
  EXPECT_EQ(reduce_all<int32_t>(ReduceOp::kMax, Type::kInt32, {}), std::numeric_limits<int32_t>::min());
  EXPECT_EQ(reduce_all<uint64_t>(ReduceOp::kMin, Type::kUint64, {}), std::numeric_limits<uint64_t>::max());
  EXPECT_EQ(reduce_all<uint8_t>(ReduceOp::kMin, Type::kBool, {}), 1);
  EXPECT_EQ(reduce_all<uint8_t>(ReduceOp::kMax, Type::kBool, {}), 0);
}

TEST_P(ReduceTest, ToNothing) {
  for (const auto& [dims, reduced] : {std::pair(std::vector<int64_t>{3, 0}, std::array{true, false, false}),
                                      std::pair(std::vector<int64_t>{0, 3}, std::array{false, true, false}),
                                      std::pair(std::vector<int64_t>{2, 0, 4}, std::array{false, false, true})}) {
    ReducePlan plan;
    ASSERT_TRUE(begin_reduce(&plan, ReduceOp::kSum, Type::kFloat).ok());
    ASSERT_TRUE(size_reduce(&plan, dims, std::span(reduced).first(dims.size())).ok());
    float untouched = 7;
    plan(&untouched, &untouched);
    EXPECT_EQ(untouched, 7);
  }
}

// Rows of one block are reduced side by side, longer rows singly; NaN and -0 come out the same.
template <class T>
void check_short_rows(Type type) {
  std::mt19937_64 random(3);
  for (const size_t n : {1, 2, 3, 8, 16, 17, 40, 512, 513}) {
    constexpr size_t kRows = 7;
    std::vector<T> x(kRows * n), out(kRows);
    for (T& v : x) v = static_cast<T>(random() % 1000) / T(64);
    std::fill_n(x.begin(), n, T(-0.0));
    x[2 * n] = static_cast<T>(NAN);
    for (const ReduceOp op : {ReduceOp::kSum, ReduceOp::kMean, ReduceOp::kMax, ReduceOp::kMin, ReduceOp::kL1,
                              ReduceOp::kL2, ReduceOp::kLogSum, ReduceOp::kSumSquare}) {
      ReducePlan plan;
      const int64_t dims[] = {kRows, static_cast<int64_t>(n)};
      const bool reduced[] = {false, true};
      ASSERT_TRUE(prepare_reduce(&plan, op, type, dims, reduced).ok());
      plan(x.data(), out.data());
      for (size_t r = 0; r < kRows; ++r) {
        const std::vector<Wide> row(x.begin() + static_cast<std::ptrdiff_t>(r * n),
                                    x.begin() + static_cast<std::ptrdiff_t>((r + 1) * n));
        const auto expected = static_cast<double>(reference(op, row));
        if (r == 2) {
          EXPECT_TRUE(std::isnan(out[r])) << n;
        } else if (std::isinf(expected)) {
          EXPECT_EQ(static_cast<double>(out[r]), expected) << n;
        } else {
          EXPECT_NEAR(static_cast<double>(out[r]), expected, 1e-5 * (1 + std::abs(expected))) << n;
        }
      }
      if (op == ReduceOp::kSum) {
        EXPECT_FALSE(std::signbit(out[0]));
      }
    }
  }
}

TEST_P(ReduceTest, ShortRows) {
  check_short_rows<float>(Type::kFloat);
  check_short_rows<double>(Type::kDouble);
}

// A long float sum keeps its accuracy: blocks are added in double.
TEST_P(ReduceTest, LongSums) {
  const std::vector<float> x(3000000, 0.1f);
  EXPECT_FLOAT_EQ(reduce_all(ReduceOp::kSum, Type::kFloat, x), static_cast<float>(0.1f * 3e6));
}

template <class T>
void check_extremes(Type type) {
  std::mt19937_64 random(8);
  for (auto [outer, n, inner] : {std::array<size_t, 3>{1, 1, 1},
                                 {3, 9, 1},
                                 {50, 16, 1},
                                 {40, 37, 1},
                                 {20, 2, 1},
                                 {9, 700, 1},
                                 {3, 2500, 1},
                                 {2, 5, 300},
                                 {1, 700, 2}}) {
    std::vector<T> x(outer * n * inner);
    for (T& v : x) v = static_cast<T>(random() % 5);
    if constexpr (std::is_floating_point_v<T>) {
      for (T& v : x) v = random() % 40 == 0 ? static_cast<T>(NAN) : v;
    }
    std::vector<int64_t> largest(outer * inner), smallest(outer * inner);
    for (bool last : {false, true}) {
      arg_max(type, x.data(), largest.data(), outer, n, inner, last);
      arg_min(type, x.data(), smallest.data(), outer, n, inner, last);
      for (size_t o = 0; o < outer; ++o) {
        for (size_t c = 0; c < inner; ++c) {
          size_t best_max = 0, best_min = 0;
          const auto at = [&](size_t i) { return x[(o * n + i) * inner + c]; };
          for (size_t i = 1; i < n; ++i) {
            const bool nan = at(i) != at(i);
            const auto better = [&](size_t best, bool wins) {
              const bool best_nan = at(best) != at(best);
              if (nan || best_nan) return nan && (!best_nan || last);
              return wins || (last && at(i) == at(best));
            };
            if (better(best_max, at(i) > at(best_max))) best_max = i;
            if (better(best_min, at(i) < at(best_min))) best_min = i;
          }
          ASSERT_EQ(largest[o * inner + c], static_cast<int64_t>(best_max));
          ASSERT_EQ(smallest[o * inner + c], static_cast<int64_t>(best_min));
        }
      }
    }
  }
}

TEST_P(ReduceTest, Extremes) {
  check_extremes<float>(Type::kFloat);
  check_extremes<double>(Type::kDouble);
  check_extremes<int8_t>(Type::kInt8);
  check_extremes<uint8_t>(Type::kUint8);
  check_extremes<uint64_t>(Type::kUint64);
}

template <class T>
void check_running(Type type) {
  for (auto [outer, n, inner] : {std::array<size_t, 3>{1, 6, 1}, {3, 9, 4}, {2, 5, 300}, {2, 0, 3}}) {
    std::vector<T> x(outer * n * inner);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 3 + 1);
    for (int mode = 0; mode < 4; ++mode) {
      const CumSumOptions options{(mode & 1) != 0, (mode & 2) != 0};
      std::vector<T> sums(x.size()), products(x.size());
      cum_sum(type, x.data(), sums.data(), outer, n, inner, options);
      cum_prod(type, x.data(), products.data(), outer, n, inner, options);
      for (size_t o = 0; o < outer; ++o) {
        for (size_t c = 0; c < inner; ++c) {
          T sum = 0;
          T product = 1;
          for (size_t k = 0; k < n; ++k) {
            const size_t at = (o * n + (options.reverse ? n - 1 - k : k)) * inner + c;
            if (options.exclusive) {
              ASSERT_EQ(sums[at], sum);
              ASSERT_EQ(products[at], product);
            }
            sum = static_cast<T>(sum + x[at]);
            product = static_cast<T>(product * x[at]);
            if (!options.exclusive) {
              ASSERT_EQ(sums[at], sum);
              ASSERT_EQ(products[at], product);
            }
          }
        }
      }
    }
  }
}

TEST_P(ReduceTest, RunningSumsAndProducts) {
  check_running<float>(Type::kFloat);
  check_running<int64_t>(Type::kInt64);
  check_running<uint8_t>(Type::kUint8);
}

}  // namespace
}  // namespace treadle::kernels::testing
