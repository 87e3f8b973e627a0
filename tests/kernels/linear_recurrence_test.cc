// Linear recurrences in blocks of time against the loop that they stand for.

#include "kernels/linear_recurrence.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/thread_pool.h"
#include "tests/kernels/kernel_test_util.h"

namespace treadle::kernels {
namespace {

template <class T>
constexpr ElementType kTypeOf = std::is_same_v<T, float>      ? ElementType::kFloat
                                : std::is_same_v<T, double>   ? ElementType::kDouble
                                : std::is_same_v<T, int32_t>  ? ElementType::kInt32
                                : std::is_same_v<T, uint32_t> ? ElementType::kUint32
                                : std::is_same_v<T, int64_t>  ? ElementType::kInt64
                                                              : ElementType::kUint64;

template <class T>
struct Case {
  int64_t steps, lanes;
  bool has_a = true, has_b = true, a_varies = true, b_varies = true, reverse = false;
  std::vector<T> a{}, b{}, initial{};

  LinearRecurrence recurrence() const {
    return {kTypeOf<T>, steps, lanes, a_varies ? lanes : 0, b_varies ? lanes : 0, reverse};
  }

  void fill(uint32_t seed) {
    std::mt19937 engine(seed);
    const auto draw = [&](std::vector<T>& values, int64_t count, double low, double high) {
      std::uniform_real_distribution<double> number(low, high);
      values.resize(static_cast<size_t>(count));
      for (T& v : values) v = static_cast<T>(static_cast<int64_t>(number(engine) * 1000));
      if constexpr (std::is_floating_point_v<T>) {
        for (T& v : values) v /= 1000;
      }
    };
    draw(a, a_varies ? steps * lanes : lanes, -1, 1);
    draw(b, b_varies ? steps * lanes : lanes, -2, 2);
    draw(initial, lanes, -3, 3);
  }
};

template <class T>
struct Result {
  std::vector<T> rows, last;
  bool operator==(const Result&) const = default;
};

// Integers as numbers without a sign, whose overflow is defined.
template <class T>
Result<T> loop(const Case<T>& c) {
  Result<T> out{std::vector<T>(static_cast<size_t>(c.steps * c.lanes)), c.initial};
  for (int64_t k = 0; k < c.steps; ++k) {
    const int64_t t = c.reverse ? c.steps - 1 - k : k;
    for (int64_t l = 0; l < c.lanes; ++l) {
      T& h = out.last[static_cast<size_t>(l)];
      if (c.has_a) h = c.a[static_cast<size_t>((c.a_varies ? t * c.lanes : 0) + l)] * h;
      if (c.has_b) h = h + c.b[static_cast<size_t>((c.b_varies ? t * c.lanes : 0) + l)];
      out.rows[static_cast<size_t>(t * c.lanes + l)] = h;
    }
  }
  return out;
}

template <class T>
Result<T> blocks(const Case<T>& c, int threads) {
  const LinearRecurrence r = c.recurrence();
  Result<T> out{std::vector<T>(static_cast<size_t>(c.steps * c.lanes)), std::vector<T>(static_cast<size_t>(c.lanes))};
  Scratch scratch(r.scratch_bytes());
  const ThreadScope scope(threads);
  r(c.has_a ? c.a.data() : nullptr, c.has_b ? c.b.data() : nullptr, c.initial.data(), out.rows.data(), out.last.data(),
    threads > 1 ? scratch.get() : nullptr);
  return out;
}

template <class T>
void expect_near(const Result<T>& found, const Result<T>& expected) {
  // Relative to the largest row: up to 2048 steps in another order; 2.3e-5 was measured.
  const double tolerance = std::is_same_v<T, float> ? 5e-5 : 1e-12;
  const auto compare = [&](const std::vector<T>& a, const std::vector<T>& b) {
    ASSERT_EQ(a.size(), b.size());
    double largest = 1;
    for (const T x : expected.rows) largest = std::max(largest, std::abs(static_cast<double>(x)));
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], tolerance * largest) << i;
  };
  compare(found.rows, expected.rows);
  compare(found.last, expected.last);
}

template <class T>
class LinearRecurrenceTest : public testing::Test {};
using Types = testing::Types<float, double, uint32_t, uint64_t>;
TYPED_TEST_SUITE(LinearRecurrenceTest, Types);

TYPED_TEST(LinearRecurrenceTest, IsTheLoop) {
  uint32_t seed = 0;
  for (const int64_t steps : {0, 1, 5, 511, 512, 513, 1031, 2048}) {
    for (const int64_t lanes : {1, 2, 3, 4, 7, 8, 15}) {
      for (int bits = 0; bits < 32; ++bits) {
        Case<TypeParam> c{steps, lanes, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0, bits >= 16};
        if (!c.has_a && !c.has_b) continue;
        c.fill(++seed);
        SCOPED_TRACE(testing::Message() << steps << " steps, " << lanes << " lanes, " << bits);
        const auto found = blocks(c, 1);
        if constexpr (std::is_floating_point_v<TypeParam>) {
          expect_near(found, loop(c));
        } else {
          ASSERT_EQ(found, loop(c));
        }
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

TYPED_TEST(LinearRecurrenceTest, ThreadsChangeNothing) {
  for (const int64_t lanes : {1, 3, 8}) {
    Case<TypeParam> c{200'003, lanes};
    c.fill(3);
    EXPECT_EQ(blocks(c, 4), blocks(c, 1)) << lanes;
  }
}

TEST(LinearRecurrence, SignedIntegersWrap) {
  Case<int32_t> c{1500, 3};
  c.fill(1);
  Case<uint32_t> wraps{1500, 3};
  wraps.a.assign(c.a.begin(), c.a.end());
  wraps.b.assign(c.b.begin(), c.b.end());
  wraps.initial.assign(c.initial.begin(), c.initial.end());
  const auto found = blocks(c, 1);
  const auto expected = loop(wraps);
  EXPECT_EQ(std::vector<uint32_t>(found.rows.begin(), found.rows.end()), expected.rows);
  EXPECT_EQ(std::vector<uint32_t>(found.last.begin(), found.last.end()), expected.last);
}

// Chunks' factors overflow, but the states are 0.
TEST(LinearRecurrence, FactorsMayOverflowWhereStatesDoNot) {
  for (const int threads : {1, 4}) {
    Case<float> c{200'000, 2};
    c.b_varies = c.a_varies = false;
    c.a = {10, 3};
    c.b = {0, 0};
    c.initial = {0, 0};
    EXPECT_EQ(blocks(c, threads), loop(c));
  }
}

// Sums from zero overflow; sums from the state before do not.
TEST(LinearRecurrence, SumsMayOverflowWhereStatesDoNot) {
  const float big = std::numeric_limits<float>::max();
  Case<float> c{1024, 1};
  c.has_a = false;
  c.initial = {-big};
  c.b.assign(1024, 0.0f);
  c.b[70] = c.b[71] = big;  // in one chunk
  EXPECT_EQ(blocks(c, 1), loop(c));
}

// The steps decide what becomes of an infinite state; the states before it stay finite.
TEST(LinearRecurrence, InfinityAndNaNAreThoseOfTheLoop) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {infinity, -infinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const int64_t at : {0, 3, 100, 511, 600, 1030}) {
      Case<float> c{1031, 2};
      c.a_varies = false;
      c.fill(5);
      c.a = {0.001f, 0.5f};
      c.b[static_cast<size_t>(2 * at)] = value;
      const auto found = blocks(c, 1), expected = loop(c);
      for (size_t i = 0; i < found.rows.size(); ++i) {
        ASSERT_EQ(std::isnan(found.rows[i]), std::isnan(expected.rows[i])) << value << " at " << at << ", " << i;
        ASSERT_EQ(std::isinf(found.rows[i]), std::isinf(expected.rows[i])) << value << " at " << at << ", " << i;
      }
    }
  }
}

}  // namespace
}  // namespace treadle::kernels
