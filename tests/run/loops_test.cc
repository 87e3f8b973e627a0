// How loops run: their counts, conditions, states and rows, and the data that a context keeps from run to run. In the
// interpreter, and as native code, for which the same interpreter begins and ends loops.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

using testing::TestWithParam;

AnyValue truth(bool value) {
  return scalar<bool>(ElementType::kBool, value);
}

// With and without native code.
class LoopsTest : public TestWithParam<Jit> {
 protected:
  static SessionOptions options() {
    SessionOptions options = interpreted();
    options.jit = GetParam();
    return options;
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, LoopsTest, testing::Values(Jit::kOff, Jit::kAlways),
                         [](const auto& jit) { return jit.param == Jit::kOff ? "interpreted" : "compiled"; });

// s = s + 1, from x on, until the condition s < 5 fails; every s is a row.
constexpr char kCounting[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (int64 m, bool go, float x) => (float last, float[n] rows) <float one = {1}, float five = {5}> {
    last, rows = Loop (m, go, x) <body = b (int64 i, bool c, float s) => (bool d, float t, float row) {
      t = Add (s, one)
      row = Identity (s)
      d = Less (t, five)
    }>
  })";

TEST_P(LoopsTest, TheCountOrTheConditionEndsThem) {
  const TextSession session(kCounting, options());
  const auto run = [&](int64_t m, bool go, float x) {
    const auto found = session.results({{"m", count_of(m)}, {"go", truth(go)}, {"x", scalar(ElementType::kFloat, x)}});
    std::vector<float> numbers = floats_of(found[1]);
    numbers.push_back(floats_of(found[0])[0]);
    return numbers;
  };
  using Numbers = std::vector<float>;
  EXPECT_EQ(run(3, true, 0), (Numbers{0, 1, 2, 3}));
  EXPECT_EQ(run(100, true, 0), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(run(100, true, 7), (Numbers{7, 8}));  // the condition is checked after the iteration
  EXPECT_EQ(run(0, true, 2), (Numbers{2}));
  EXPECT_EQ(run(-4, true, 2), (Numbers{2}));  // no iteration
  EXPECT_EQ(run(3, false, 2), (Numbers{2}));
  EXPECT_EQ(run(3, true, 0), (Numbers{0, 1, 2, 3}));  // nothing remains of the runs in between
  EXPECT_LE(session->counters().plans, 2);
}

// Rows of a loop of unknown trip count get more memory as they come.
TEST_P(LoopsTest, RowsGrowAsOftenAsTheyHaveTo) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float limit) => (float last, float[n,3] rows) <float[3] zero = {0, 0, 0}, float begin = {0}, float one = {1}, bool yes = {1}> {
      last, rows = Loop (, yes, begin) <body = b (int64 i, bool c, float s) => (bool d, float t, float[3] row) {
        t = Add (s, one)
        row = Add (zero, s)
        d = Less (t, limit)
      }>
    })",
                            options());
  for (const int64_t count : {1, 5, 1000, 70000, 2}) {
    const auto found = session.results({{"limit", scalar(ElementType::kFloat, static_cast<float>(count))}});
    const std::vector<float> rows = floats_of(found[1]);
    ASSERT_EQ(rows.size(), static_cast<size_t>(3 * count));
    for (size_t i = 0; i < rows.size(); ++i) ASSERT_EQ(rows[i], static_cast<float>(i / 3)) << count;
  }
}

// The back edge moves all states at once.
TEST_P(LoopsTest, StatesMayChangePlaces) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, float[2] a, float[2] b, float[2] c) => (float[2] x, float[2] y, float[2] z) <bool yes = {1}> {
      x, y, z = Loop (m, yes, a, b, c) <
        body = r (int64 i, bool go, float[2] p, float[2] q, float[2] r) => (bool on, float[2] u, float[2] v, float[2] w) {
          on = Identity (go)
          u = Identity (q)
          v = Identity (r)
          w = Identity (p)
      }>
    })",
                            options());
  const Tensor given[] = {some_floats({2}, 1), some_floats({2}, 2), some_floats({2}, 3)};
  for (int64_t m = 0; m < 8; ++m) {
    const auto found = session.results({{"m", count_of(m)}, {"a", given[0]}, {"b", given[1]}, {"c", given[2]}});
    for (int64_t k = 0; k < 3; ++k) {
      EXPECT_TRUE(identical(found[static_cast<size_t>(k)].tensor(), given[(k + m) % 3]))
          << m << " iterations, state " << k;
    }
  }
}

// Every entry of the inner loop begins from the outer state again.
TEST_P(LoopsTest, AnInnerLoopBeginsAnewInEveryIteration) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, int64 k, float x) => (float y) <bool yes = {1}, float one = {1}, float two = {2}> {
      y = Loop (m, yes, x) <body = outer (int64 i, bool go, float s) => (bool on, float t) {
        on = Identity (go)
        inner = Loop (k, yes, one) <body = body (int64 j, bool go2, float p) => (bool on2, float q) {
          on2 = Identity (go2)
          q = Mul (p, two)
        }>
        t = Add (s, inner)
      }>
    })",
                            options());
  const auto run = [&](int64_t m, int64_t k) {
    return floats_of(
        session.results({{"m", count_of(m)}, {"k", count_of(k)}, {"x", scalar(ElementType::kFloat, 0.5f)}})[0])[0];
  };
  EXPECT_EQ(run(3, 4), 0.5f + 3 * 16);
  EXPECT_EQ(run(2, 0), 0.5f + 2 * 1);
  EXPECT_EQ(run(0, 4), 0.5f);
  EXPECT_EQ(run(5, 2), 0.5f + 5 * 4);
}

// A tensor that grows by Concat along either axis, read in every iteration.
TEST_P(LoopsTest, StatesThatGrowAlongAnyAxis) {
  for (const int axis : {0, 1}) {
    const TextSession session(fmt::format(R"(<ir_version: 10, opset_import: ["" : 22]>
      g (int64 m, float[{0},{1}] x) => (float[a,b] y, float[n] sums) <bool yes = {{1}}> {{
        y, sums = Loop (m, yes, x) <body = b (int64 i, bool go, float[c,d] s) => (bool on, float[e,f] t, float sum) {{
          on = Identity (go)
          sum = ReduceSum <keepdims = 0> (s)
          number = Add (sum, sum)
          shape = Constant <value = int64[2] {{{0}, {1}}}> ()
          piece = Expand (number, shape)
          t = Concat <axis = {2}> (s, piece)
        }}>
      }})",
                                          axis == 0 ? 1 : 2, axis == 0 ? 2 : 1, axis),
                              options());
    const Tensor x = axis == 0 ? some_floats({1, 2}) : some_floats({2, 1});
    for (const int64_t m : {0, 1, 6, 3}) {
      float sum = x.data<float>()[0] + x.data<float>()[1];
      std::vector<float> sums;
      for (int64_t i = 0; i < m; ++i, sum *= 5) sums.push_back(sum);  // two more elements of twice the sum
      const auto found = session.results({{"m", count_of(m)}, {"x", x}});
      EXPECT_EQ(found[0].tensor().dims()[static_cast<size_t>(axis)], m + 1);
      EXPECT_EQ(floats_of(found[1]), sums) << m << " iterations along axis " << axis;
    }
  }
}

// Sizes that differ from run to run are prepared once, and found again.
TEST_P(LoopsTest, OnePlanServesEveryLength) {
  const auto* model = R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[2] h, float[n,2] x) => (float[2] last, float[n,2] y) {
      last, y = Scan <num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] t, float[2] o) {
        t = Add (s, e)
        o = Identity (t)
      }> (h, x)
    })";
  const TextSession session(model, options()), reference(model, by_reference());
  for (const int64_t length : {5, 3, 0, 700, 1, 5}) {
    const Feeds feeds{{"h", some_floats({2})}, {"x", some_floats({length, 2}, 1)}};
    expect_identical(session.results(feeds), reference.results(feeds));
  }
  EXPECT_EQ(session->counters().plans, 2);
}

TEST_P(LoopsTest, ThreadsShareASession) {
  const TextSession session(kCounting, options());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int64_t k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      for (int64_t run = 0; run < 50; ++run) {
        const auto found =
            session.results({{"m", count_of(k)}, {"go", truth(true)}, {"x", scalar(ElementType::kFloat, 0.0f)}});
        wrong += floats_of(found[0])[0] != static_cast<float>(k);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace treadle::testing_support
