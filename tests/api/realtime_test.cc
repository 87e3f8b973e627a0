// What is said of runs and pushes that may not keep real time. tests/api/stream_cost_test.cc and tests/realtime/
// check those that do.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "treadle/treadle.hpp"

namespace {

constexpr const char* kHeader = "<ir_version: 9, opset_import: [\"\" : 20]>\n";

// Of sessions, beside one thread and no native code.
using Settings = std::vector<std::pair<std::string, std::string>>;

treadle::Session open(const std::string& text, const Settings& settings = {}) {
  treadle::SessionOptions options;
  options.set("threads", "1").set("jit", "off");
  for (const auto& [name, value] : settings) options.set(name, value);
  const std::string model = kHeader + text;
  return {model.data(), model.size(), options};
}

treadle::Value ones(const std::vector<int64_t>& dims) {
  int64_t count = 1;
  for (const int64_t size : dims) count *= size;
  const std::vector<float> data(static_cast<size_t>(count), 1.0F);
  return treadle::Value::of(data.data(), dims);
}

std::string why(const std::string& text, const treadle::Feeds& feeds, const Settings& settings = {}) {
  return open(text, settings).breaks_realtime(feeds);
}

constexpr const char* kPlain = "g (float[N] x) => (float[N] y) { y = Tanh (x) }";

TEST(Realtime, RunsOfKnownSizesKeepIt) {
  EXPECT_EQ(why(kPlain, {{"x", ones({4})}}), "");
}

TEST(Realtime, SeveralThreadsWaitForEachOther) {
  EXPECT_EQ(why(kPlain, {{"x", ones({4})}}, {{"threads", "2"}}),
            "the session may use several threads, which wait for each other: open it with threads = 1");
}

TEST(Realtime, TheReferenceInterpreterDoesNotKeepIt) {
  EXPECT_EQ(why(kPlain, {{"x", ones({4})}}, {{"tier", "reference"}}),
            "the reference interpreter asks for memory at each node");
}

TEST(Realtime, NodesOfSizesThatDependOnDataAreNamed) {
  EXPECT_EQ(why("g (float[4] x) => (int64[1, K] y) { y = NonZero (x) }", {{"x", ones({4})}}),
            "/NonZero_0 (NonZero-13) makes values of any size");
}

TEST(Realtime, StatesThatGrowAreNamed) {
  const int64_t count = 3;
  const bool go = true;
  const std::string said =
      why(R"(
    g (int64 m, bool go, float[1] x) => (float[K] y) {
      y = Loop (m, go, x) <body = b (int64 i, bool c, float[L] s) => (bool d, float[P] t) {
        d = Identity (c)
        t = Concat <axis = 0> (s, x)
      }>
    })",
          {{"m", treadle::Value::of(&count, {})}, {"go", treadle::Value::of(&go, {})}, {"x", ones({1})}});
  EXPECT_NE(said.find("Concat"), std::string::npos) << said;
}

constexpr const char* kScan = R"(
  g (float[T, 3] x, float[3] s0) => (float[3] s, float[T, 3] y) {
    s, y = Scan <num_scan_inputs = 1, body = step (float[3] s_in, float[3] xi) => (float[3] s_out, float[3] yi) {
      s_out = Add (s_in, xi)
      yi = Tanh (s_out)
    }> (s0, x)
  })";

TEST(Realtime, ALoopThatMayStillBeCompiledIsNamed) {
  const treadle::Session session = open(kScan, {{"jit", "auto"}});
  const treadle::Feeds feeds = {{"x", ones({5, 3})}, {"s0", ones({3})}};
  EXPECT_EQ(session.breaks_realtime(feeds), "/Scan_0 (Scan-19) may still be compiled: warm up first");
}

TEST(Realtime, AStreamSaysItOfItsPushes) {
  const treadle::Session session = open(kScan);
  treadle::Stream stream(session, treadle::StreamOptions().time("x", 0).bind("s0", ones({3})));
  EXPECT_EQ(stream.text().find("real time"), std::string::npos) << stream.text();
  EXPECT_EQ(stream.breaks_realtime(5), "");
  stream.push({{"x", ones({5, 3})}});
  stream.push({{"x", ones({5, 3})}});
  EXPECT_NE(stream.text().find("pushes of 5 samples keep real time"), std::string::npos) << stream.text();
  EXPECT_EQ(stream.breaks_realtime(-1), "a push has at least one sample, not -1");
}

TEST(Realtime, NoReasonIsWantedWhereNoneIsTaken) {
  EXPECT_FALSE(treadle_stream_is_realtime(nullptr, 0, nullptr));
  EXPECT_FALSE(treadle_session_is_realtime(nullptr, nullptr, nullptr, 0, nullptr));
}

}  // namespace
