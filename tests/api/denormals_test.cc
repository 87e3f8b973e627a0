// The option `denormals`: arithmetic keeps numbers nearer to 0 than any normal one, or takes them for 0, in every tier,
// on every thread; the mode of the calling thread stays as it was.

#include "base/denormals.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "treadle/treadle.hpp"

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::SessionOptions;
using treadle::Value;

constexpr float kSmall = 1e-38F;  // half of it is denormal
constexpr const char* kHeader = "<ir_version: 9, opset_import: [\"\" : 20]>\n";

// A product that is denormal, a sum of denormal operands, a product with a large number, of a matrix, and a constant.
constexpr const char* kModel = R"(
g (float[N] x, float[N, 1] column) => (float[N] halves, float[N] sums, float[N] grown, float[N, 1] product, float[1] constant)
<float half = {0.5}, float large = {1e20}, float[1, 1] quarter = {0.25}, float[1] tiny = {1e-38}> {
  halves = Mul (x, half)
  sums = Add (halves, halves)
  grown = Mul (halves, large)
  product = MatMul (column, quarter)
  constant = Mul (tiny, half)
})";

// A state that fades away.
constexpr const char* kFading = R"(
g (float[T, 8] x, float[8] s0) => (float[8] s, float[T, 8] y) {
  s, y = Scan <num_scan_inputs = 1, body = step (float[8] s_in, float[8] xi) => (float[8] s_out, float[8] yi) {
    half = Constant <value_float = 0.5> ()
    h = Mul (s_in, half)
    s_out = Add (h, xi)
    yi = Identity (s_out)
  }> (s0, x)
})";

Session session_of(const char* model, const std::string& denormals, const std::string& tier,
                   const char* threads = "1") {
  SessionOptions options;
  options.set("threads", threads).set("denormals", denormals);
  if (tier == "reference") options.set("tier", tier);
  if (tier != "reference") options.set("jit", tier == "native" ? "always" : "off");
  const std::string text = kHeader + std::string(model);
  return Session(text.data(), text.size(), options);
}

Value filled(const std::vector<int64_t>& dims, float with) {
  Value value = Value::tensor(1, dims);
  std::fill_n(value.mutable_data<float>(), value.count(), with);
  return value;
}

class Denormal : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!treadle::kCanFlushDenormals) GTEST_SKIP() << "this processor has no such mode";
  }
};

void expect_all(const Value& value, float expected, const std::string& what) {
  for (int64_t i = 0; i < value.count(); ++i) ASSERT_EQ(value.data<float>()[i], expected) << what << " " << i;
}

TEST_P(Denormal, AreKeptOrFlushed) {
  for (const int64_t n : {1, 7, 64, 1000}) {
    const Feeds feeds = {{"x", filled({n}, kSmall)}, {"column", filled({n, 1}, 2e-38F)}};
    for (const bool flush : {false, true}) {
      const Session session = session_of(kModel, flush ? "flush" : "keep", GetParam());
      const std::vector<Value> results = session.run(feeds);
      const std::string what = flush ? "flush" : "keep";
      expect_all(results[0], flush ? 0 : kSmall / 2, what + " halves");
      expect_all(results[1], flush ? 0 : kSmall, what + " sums");
      expect_all(results[2], flush ? 0 : kSmall / 2 * 1e20F, what + " grown");
      expect_all(results[3], flush ? 0 : 2e-38F / 4, what + " product");
      expect_all(results[4], flush ? 0 : kSmall / 2, what + " constant");
    }
  }
}

TEST_P(Denormal, OfAFadingStateAreKeptOrFlushed) {
  const Feeds feeds = {{"x", filled({200, 8}, 0)}, {"s0", filled({8}, 1)}};
  const Session keeps = session_of(kFading, "keep", GetParam()), flushes = session_of(kFading, "flush", GetParam());
  const Value kept = keeps.run(feeds)[1], flushed = flushes.run(feeds)[1];
  EXPECT_EQ(kept.data<float>()[130 * 8], std::ldexp(1.0F, -131));
  EXPECT_EQ(flushed.data<float>()[130 * 8], 0);
  EXPECT_EQ(flushed.data<float>()[120 * 8], std::ldexp(1.0F, -121));
}

// Whether arithmetic of this thread keeps denormal numbers.
bool keeps_here() {
  volatile float small = kSmall;
  return small * 0.5F > 0;
}

TEST_P(Denormal, TheModeOfTheCallerStays) {
  const Session session = session_of(kModel, "flush", GetParam());
  const Feeds feeds = {{"x", filled({8}, kSmall)}, {"column", filled({8, 1}, kSmall)}};
  EXPECT_TRUE(keeps_here());
  session.run(feeds);
  EXPECT_TRUE(keeps_here());
  const Feeds wrong = {{"x", filled({8}, kSmall)}};
  EXPECT_THROW(session.run(wrong), treadle::Error);
  EXPECT_TRUE(keeps_here());
  treadle::BoundRun bound = session.bind(feeds);
  bound.run();
  EXPECT_TRUE(keeps_here());
  expect_all(bound.results()[0], 0, "bound");
  {
    const treadle::DenormalScope mode(treadle::Denormals::kFlush);
    session.run(feeds);
    EXPECT_FALSE(keeps_here());
    // A session that keeps them leaves the program's mode alone.
    expect_all(session_of(kModel, "keep", GetParam()).run(feeds)[0], 0, "the program's mode");
  }
  EXPECT_TRUE(keeps_here());
}

TEST_P(Denormal, StepsFlushAsPushesDo) {
  const Session session = session_of(R"(
g (float[4] x, float[4] s) => (float[4] y, float[4] sN) <float half = {0.5}> {
  h = Mul (s, half)
  sN = Add (h, x)
  y = Identity (sN)
})",
                                     "flush", GetParam());
  treadle::Stream stream(session, treadle::StreamOptions());
  Feeds feeds = {{"x", filled({4}, 1)}};
  const std::vector<Value>& results = stream.bind(feeds);
  stream.step();
  std::fill_n(feeds[0].second.mutable_data<float>(), 4, 0.0F);
  for (int i = 0; i < 200; ++i) {
    stream.step();
    ASSERT_EQ(results[0].data<float>()[0], i < 126 ? std::ldexp(1.0F, -i - 1) : 0) << i;
  }
  EXPECT_TRUE(keeps_here());
}

INSTANTIATE_TEST_SUITE_P(Tiers, Denormal, ::testing::Values("program", "native", "reference"));

TEST(DenormalThreads, EveryThreadThatComputesFlushes) {
  if (!treadle::kCanFlushDenormals) GTEST_SKIP() << "this processor has no such mode";
  const Session session = session_of(R"(
g (float[N] x) => (float[N] y) <float half = {0.5}> {
  y = Mul (x, half)
})",
                                     "flush", "program", "4");
  const Feeds feeds = {{"x", filled({8'000'000}, kSmall)}};
  for (int i = 0; i < 4; ++i) expect_all(session.run(feeds)[0], 0, "of many threads");
}

TEST(DenormalOption, TakesKeepAndFlushOnly) {
  EXPECT_THROW(SessionOptions().set("denormals", "drop"), treadle::Error);
  SessionOptions().flush_denormals(false);
}

}  // namespace
