// A run's progress reports: iterations of outermost loops, in every tier.
#include <gtest/gtest.h>

#include "stream/stream.h"
#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

struct Told {
  std::vector<std::pair<int64_t, int64_t>> calls;  // done, total
  size_t cancel_at = SIZE_MAX;

  static bool tell(void* context, int64_t done, int64_t total) {
    auto& told = *static_cast<Told*>(context);
    told.calls.emplace_back(done, total);
    return told.calls.size() == told.cancel_at;
  }
  RunOptions options() {
    RunOptions options;
    options.progress = tell;
    options.progress_context = this;
    return options;
  }
};

// Two loops in sequence, the first with an inner loop; `m` and `n`: their trip counts.
constexpr char kTwoLoops[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (int64 m, int64 n, float[4] x) => (float[4] z) <int64 ten = {10}, bool yes = {1}> {
    y = Loop (m, yes, x) <body = outer (int64 i, bool go, float[4] s) => (bool on, float[4] t) {
      on = Identity (go)
      t = Loop (ten, yes, s) <body = inner (int64 j, bool go2, float[4] p) => (bool on2, float[4] q) {
        on2 = Identity (go2)
        q = Tanh (p)
      }>
    }>
    z = Loop (n, yes, y) <body = last (int64 k, bool go3, float[4] u) => (bool on3, float[4] v) {
      on3 = Identity (go3)
      v = Sin (u)
    }>
  })";

struct Way {
  const char* name;
  SessionOptions options;
  bool knows_total = true;  // of the current loop
};

class ProgressTest : public testing::TestWithParam<Way> {
 protected:
  static Status run(const TextSession& session, int64_t m, int64_t n, Told& told) {
    std::vector<AnyValue> results;
    return session.run({{"m", count_of(m)}, {"n", count_of(n)}, {"x", some_floats({4})}}, results, told.options());
  }
};
INSTANTIATE_TEST_SUITE_P(Tiers, ProgressTest,
                         testing::Values(Way{"interpreted", interpreted()}, Way{"compiled", compiled()},
                                         Way{"reference", by_reference(), false}),
                         [](const auto& way) { return way.param.name; });

TEST_P(ProgressTest, ARunThatSucceedsIsToldOnceAtItsEnd) {
  const TextSession session(kTwoLoops, GetParam().options);
  Told told;
  const Status status = run(session, 7, 5, told);
  ASSERT_TRUE(status.ok()) << status.to_string();
  EXPECT_EQ(told.calls.back(), std::pair(int64_t{12}, int64_t{12})) << "without the loop inside";
}

TEST_P(ProgressTest, GrowsWhileALoopRunsUntilTheCallerCancels) {
  const TextSession session(kTwoLoops, GetParam().options);
  constexpr int64_t kMany = int64_t{1} << 40;
  Told told{.calls = {}, .cancel_at = 3};
  const Status status = run(session, 3, kMany, told);
  EXPECT_EQ(status.code(), Code::kCancelled) << status.to_string();
  ASSERT_EQ(told.calls.size(), 3u);
  const int64_t total = GetParam().knows_total ? kMany + 3 : -1;
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(told.calls[i].second, total);
    EXPECT_GT(told.calls[i].first, i == 0 ? 3 : told.calls[i - 1].first);
  }
  Told again;
  EXPECT_TRUE(run(session, 1, 1, again).ok()) << "the session can be run again";
}

TEST_P(ProgressTest, ATotalIsUnknownWhileALaterLoopMayRunForAnyTime) {
  const TextSession session(kTwoLoops, GetParam().options);
  Told told{.calls = {}, .cancel_at = 1};
  EXPECT_EQ(run(session, int64_t{1} << 40, 2, told).code(), Code::kCancelled);
  EXPECT_EQ(told.calls[0].second, -1);
}

TEST_P(ProgressTest, ATotalIsUnknownWhileALaterLoopMayNotBegin) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, int64 n, float[4] x) => (float[4] z) <int64 ten = {10}, bool yes = {1}, float zero = {0}> {
      y = Loop (m, yes, x) <body = first (int64 i, bool go, float[4] s) => (bool on, float[4] t) {
        on = Identity (go)
        t = Tanh (s)
      }>
      most = ReduceMax <keepdims = 0> (x)
      begins = Less (most, zero)
      z = Loop (ten, begins, y) <body = last (int64 k, bool go2, float[4] u) => (bool on2, float[4] v) {
        on2 = Identity (go2)
        v = Sin (u)
      }>
    })",
                            GetParam().options);
  Told told{.calls = {}, .cancel_at = 1};
  EXPECT_EQ(run(session, int64_t{1} << 40, 2, told).code(), Code::kCancelled);
  EXPECT_EQ(told.calls[0].second, -1);
}

TEST_P(ProgressTest, TheLastCallCancelsAsWell) {
  const TextSession session(kTwoLoops, GetParam().options);
  Told told{.calls = {}, .cancel_at = 1};
  EXPECT_EQ(run(session, 1, 1, told).code(), Code::kCancelled);
}

// A loop that ends by a condition, then one over rows of known number; a branch that is not taken holds a third one.
TEST(Progress, KnowsLoopsThatArePlannedAndPassesThoseThatDoNotRun) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (bool deep, float[1000000,4] rows, float[4] x) => (float[4] z) {
      y = If (deep) <
        then_branch = deeper () => (float[4] a) {
          a, unused = Scan <num_scan_inputs = 1, body = b1 (float[4] s, float[4] r) => (float[4] t, float[4] o) {
            p = Tanh (s)  t = Add (p, r)  o = Identity (t)
          }> (x, rows)
        },
        else_branch = flat () => (float[4] b) { b = Identity (x) }>
      z = Scan <num_scan_inputs = 1, body = b2 (float[4] u, float[4] q) => (float[4] v) {
        w = Sin (u)  v = Add (w, q)
      }> (y, rows)
    })",
                            interpreted());
  Tensor rows = some_floats({1000000, 4});
  for (const bool deep : {false, true}) {
    Told told;
    std::vector<AnyValue> results;
    const Status status =
        session.run({{"deep", Tensor::scalar<bool>(ElementType::kBool, deep)}, {"rows", rows}, {"x", some_floats({4})}},
                    results, told.options());
    ASSERT_TRUE(status.ok()) << status.to_string();
    ASSERT_GE(told.calls.size(), 2u) << "it takes longer than the first 5 ms";
    EXPECT_EQ(told.calls[0].second, deep ? 2000000 : 1000000);
    EXPECT_EQ(told.calls.back().first, deep ? 2000000 : 1000000);
  }
}

}  // namespace
}  // namespace treadle::testing_support
