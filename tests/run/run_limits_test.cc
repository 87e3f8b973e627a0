// Limits of a run: the same error code in every tier, and a session that works on afterwards.
#include <gtest/gtest.h>

#include <thread>

#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

// Iterations of an outer loop, each with ten of an inner one; `m`: the trip count of the outer one.
constexpr char kNested[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (int64 m, float[4] x) => (float[4] y) <int64 ten = {10}, bool yes = {1}> {
    y = Loop (m, yes, x) <body = outer (int64 i, bool go, float[4] s) => (bool on, float[4] t) {
      on = Identity (go)
      t = Loop (ten, yes, s) <body = inner (int64 j, bool go2, float[4] p) => (bool on2, float[4] q) {
        on2 = Identity (go2)
        q = Tanh (p)
      }>
    }>
  })";

struct Way {
  const char* name;
  SessionOptions options;
};

class RunLimitsTest : public testing::TestWithParam<Way> {
 protected:
  Status run(int64_t iterations, const RunOptions& options) const {
    std::vector<AnyValue> results;
    return session_.run({{"m", count_of(iterations)}, {"x", some_floats({4})}}, results, options);
  }
  void expect_works_on() const { EXPECT_TRUE(run(3, {}).ok()); }

  const TextSession session_{kNested, GetParam().options};
};
INSTANTIATE_TEST_SUITE_P(Tiers, RunLimitsTest,
                         testing::Values(Way{"interpreted", interpreted()}, Way{"compiled", compiled()},
                                         Way{"reference", by_reference()}),
                         [](const auto& way) { return way.param.name; });

TEST_P(RunLimitsTest, IterationsOfAllLoopsAreCountedTogether) {
  RunOptions options;
  options.iteration_limit = 1000;
  EXPECT_TRUE(run(90, options).ok());  // 990
  const Status status = run(1'000'000, options);
  EXPECT_EQ(status.code(), Code::kLimit) << status.to_string();
  EXPECT_NE(status.message().find("1000"), std::string::npos) << status.to_string();
  expect_works_on();
}

TEST_P(RunLimitsTest, TimeRunsOut) {
  RunOptions options;
  options.time_limit_s = 0.02;
  const Status status = run(int64_t{1} << 40, options);
  EXPECT_EQ(status.code(), Code::kLimit) << status.to_string();
  expect_works_on();
}

TEST_P(RunLimitsTest, AnotherThreadCancels) {
  std::atomic<bool> cancel{false};
  RunOptions options;
  options.cancel = &cancel;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    cancel = true;
  });
  const Status status = run(int64_t{1} << 40, options);
  later.join();
  EXPECT_EQ(status.code(), Code::kCancelled) << status.to_string();
  expect_works_on();
}

TEST_P(RunLimitsTest, TheCallerIsAskedWhetherToStop) {
  int asked = 0;
  RunOptions options;
  options.interrupted_context = &asked;
  options.interrupted = [](void* context) { return ++*static_cast<int*>(context) == 3; };
  const Status status = run(int64_t{1} << 40, options);
  EXPECT_EQ(status.code(), Code::kCancelled) << status.to_string();
  EXPECT_EQ(asked, 3);
  expect_works_on();
}

// Rows whose number is unknown at planning.
TEST(RunLimits, MemoryOfRowsIsBounded) {
  for (const SessionOptions& options : {interpreted(), compiled(), by_reference()}) {
    const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
      g (int64 m, float[1000] x) => (float[n,1000] rows) <bool yes = {1}> {
        last, rows = Loop (m, yes, x) <body = b (int64 i, bool go, float[1000] s) => (bool on, float[1000] t, float[1000] row) {
          on = Identity (go)
          t = Neg (s)
          row = Identity (t)
        }>
      })",
                              options);
    RunOptions limited;
    limited.memory_limit = 4 << 20;
    std::vector<AnyValue> results;
    const Status status = session.run({{"m", count_of(1'000'000)}, {"x", some_floats({1000})}}, results, limited);
    EXPECT_EQ(status.code(), Code::kLimit) << status.to_string();
    EXPECT_TRUE(session.run({{"m", count_of(100)}, {"x", some_floats({1000})}}, results, limited).ok());
  }
}

}  // namespace
}  // namespace treadle::testing_support
