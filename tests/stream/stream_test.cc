// Streams of each kind: for any division of a signal into pushes, the results are those of one run, and a push that
// fails leaves a stream unchanged.
#include "stream/stream.h"

#include <gtest/gtest.h>

#include <cstring>

#include "stream/pool.h"
#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

// h' = tanh(h + x), and each state plus the one two samples later. Sums of two have one order, so bits do not depend on
// the pushes.
constexpr char kOverTime[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (float[1,T] x) => (float[1,U] y, float[1] last)
    <float[1] zero = {0}, int64[1] axis = {1}, int64[1] first = {0}, int64[1] third = {2}, int64[1] third_last = {-2},
     int64[1] end = {9223372036854775807}> {
    last, h = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                    body = b (float[1] s, float[1] e) => (float[1] t, float[1] o) {
      a = Add (s, e)
      t = Tanh (a)
      o = Identity (t)
    }> (zero, x)
    early = Slice (h, first, third_last, axis)
    late = Slice (h, third, end, axis)
    y = Add (early, late)
  })";

// The next state is the one before plus the sum of the window.
constexpr char kWindow[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (float[6] x, float[1] h0) => (float[1] y, float[1] hn) {
    sum = ReduceSum <keepdims = 1> (x)
    hn = Add (h0, sum)
    y = Identity (sum)
  })";

Tensor piece_of(const Tensor& signal, int64_t begin, int64_t count) {
  Dims dims = signal.dims();
  dims.back() = count;
  Tensor piece = *Tensor::allocate(ElementType::kFloat, dims);
  if (count) std::memcpy(piece.mutable_raw(), signal.data<float>() + begin, piece.byte_size());
  return piece;
}

StreamOptions timed(const char* input, int64_t axis, int64_t hop = 0, int64_t context = 0) {
  StreamOptions options;
  options.time = {{input, "", axis}};
  options.hop = hop;
  options.context = context;
  return options;
}

class StreamTest : public testing::Test {
 protected:
  Stream open(const TextSession& session, StreamOptions options) const {
    auto stream = Stream::open(session.shared(), std::move(options));
    EXPECT_TRUE(stream.ok()) << stream.error().to_string();
    return std::move(stream).value();
  }
  // The first output of a push, as numbers.
  static std::vector<float> push(Stream& stream, const AnyValue& chunk) {
    const Feed feed{"x", &chunk};
    auto pushed = stream.push({&feed, 1});
    EXPECT_TRUE(pushed.ok()) << pushed.error().to_string();
    return pushed.ok() ? floats_of(pushed->outputs[0]) : std::vector<float>();
  }
  static std::vector<float> flush(Stream& stream) {
    auto pushed = stream.flush({});
    EXPECT_TRUE(pushed.ok()) << pushed.error().to_string();
    return pushed.ok() ? floats_of(pushed->outputs[0]) : std::vector<float>();
  }
  // Makes pushes of these sizes in turn until the signal ends, then the flush.
  static std::vector<float> push_all(Stream& stream, const Tensor& signal, std::vector<int64_t> sizes) {
    std::vector<float> all;
    const int64_t length = signal.dims().back();
    for (int64_t begin = 0, turn = 0; begin < length; ++turn) {
      const int64_t count = std::min(sizes[static_cast<size_t>(turn) % sizes.size()], length - begin);
      for (const float x : push(stream, piece_of(signal, begin, count))) all.push_back(x);
      begin += count;
    }
    for (const float x : flush(stream)) all.push_back(x);
    return all;
  }

  const TextSession over_time_{kOverTime};
  const Tensor signal_ = some_floats({1, 41});
};

TEST_F(StreamTest, PushesOverTimeAreOneRunHoweverTheyAreCut) {
  const std::vector<float> expected = floats_of(over_time_.results({{"x", signal_}})[0]);
  ASSERT_EQ(expected.size(), 39u);
  for (const SessionOptions& options : {interpreted(), compiled()}) {
    const TextSession session(kOverTime, options);
    for (const std::vector<int64_t>& sizes : std::vector<std::vector<int64_t>>{{1}, {2, 0, 3}, {41}, {40, 1}, {7}}) {
      Stream stream = open(session, timed("x", 1));
      EXPECT_EQ(push_all(stream, signal_, sizes), expected);
      ASSERT_TRUE(stream.reset().ok());
      EXPECT_EQ(push_all(stream, signal_, sizes), expected);
    }
  }
}

TEST_F(StreamTest, FramesComeAsSoonAsTheirSamplesHave) {
  Stream stream = open(over_time_, timed("x", 1));
  EXPECT_TRUE(push(stream, piece_of(signal_, 0, 2)).empty());
  EXPECT_EQ(push(stream, piece_of(signal_, 2, 1)).size(), 1u);
  EXPECT_EQ(push(stream, piece_of(signal_, 3, 10)).size(), 10u);
  EXPECT_EQ(stream.pending(), 0);
}

// The last state is that of the samples so far.
TEST_F(StreamTest, OutputsWithoutFramesAreThoseSoFar) {
  Stream stream = open(over_time_, timed("x", 1));
  for (int64_t n = 1; n <= 12; ++n) {
    const AnyValue chunk = piece_of(signal_, n - 1, 1);
    const Feed feed{"x", &chunk};
    auto pushed = stream.push({&feed, 1});
    ASSERT_TRUE(pushed.ok());
    if (n < 3) continue;  // the model's first block has three samples
    const auto expected = over_time_.results({{"x", piece_of(signal_, 0, n)}});
    EXPECT_TRUE(identical(pushed->outputs[1], expected[1])) << n;
  }
}

TEST_F(StreamTest, ACopyAndASnapshotGoOnFromTheSamePlace) {
  Stream first = open(over_time_, timed("x", 1));
  push(first, piece_of(signal_, 0, 20));
  Stream copy = first;
  const auto snapshot = first.save();
  ASSERT_TRUE(snapshot.ok());
  const std::vector<float> expected = push(first, piece_of(signal_, 20, 21));
  EXPECT_EQ(push(copy, piece_of(signal_, 20, 21)), expected);
  Stream loaded = open(over_time_, timed("x", 1));
  push(loaded, piece_of(signal_, 5, 3));
  ASSERT_TRUE(loaded.load(*snapshot).ok());
  EXPECT_EQ(push(loaded, piece_of(signal_, 20, 21)), expected);
  EXPECT_FALSE(loaded.load(snapshot->substr(0, snapshot->size() / 2)).ok());
}

TEST_F(StreamTest, APushThatFailsChangesNothing) {
  Stream stream = open(over_time_, timed("x", 1)), other = open(over_time_, timed("x", 1));
  push(stream, piece_of(signal_, 0, 20));
  push(other, piece_of(signal_, 0, 20));
  const AnyValue chunk = piece_of(signal_, 20, 9), wrong = some_floats({2, 9});
  const Feed good{"x", &chunk}, bad{"x", &wrong}, unknown{"z", &chunk};
  EXPECT_EQ(stream.push({&bad, 1}).status().code(), Code::kInvalidArgument);
  EXPECT_EQ(stream.push({&unknown, 1}).status().code(), Code::kInvalidArgument);
  RunOptions options;
  options.iteration_limit = 2;
  EXPECT_EQ(stream.push({&good, 1}, options).status().code(), Code::kLimit);
  EXPECT_EQ(push(stream, chunk), push(other, chunk));
  EXPECT_EQ(flush(stream), flush(other));
}

// A push into existing tensors gives the results of a push without them, for any sizes before.
TEST_F(StreamTest, PushesIntoPlacesGiveTheSame) {
  for (const bool warm : {false, true}) {
    Stream stream = open(over_time_, timed("x", 1)), other = stream;
    if (warm) {
      const int64_t sizes[] = {4, 5};
      ASSERT_TRUE(stream.warm(sizes).ok());
    }
    AnyValue places[2];
    AnyValue* const outputs[] = {&places[0], &places[1]};
    int64_t begin = 0;
    for (const int64_t count : {4, 4, 5, 4, 5, 4, 0, 4, 5}) {
      const AnyValue chunk = piece_of(signal_, begin, count);
      const Feed feed{"x", &chunk};
      begin += count;
      const auto runs = stream.push_into({&feed, 1}, outputs);
      ASSERT_TRUE(runs.ok()) << runs.error().to_string();
      EXPECT_EQ(floats_of(places[0]), push(other, chunk)) << begin;
    }
  }
}

TEST_F(StreamTest, WindowsRunOncePerHop) {
  const TextSession session(kWindow);
  Stream stream = open(session, timed("x", 0, 4, 2));
  const Tensor signal = some_floats({11});
  std::vector<float> expected;
  float state = 0;
  for (int64_t hop = 0; hop < 3; ++hop) {  // the last one is padded with zeros
    Tensor window = *Tensor::allocate(ElementType::kFloat, {6});
    for (int64_t i = 0; i < 6; ++i) {
      const int64_t at = 4 * hop + i - 2;
      window.mutable_data<float>()[i] = at >= 0 && at < 11 ? signal.data<float>()[at] : 0;
    }
    Tensor before = *Tensor::allocate(ElementType::kFloat, {1});
    *before.mutable_data<float>() = state;
    const auto results = session.results({{"x", window}, {"h0", before}});
    expected.push_back(floats_of(results[0])[0]);
    state = floats_of(results[1])[0];
  }
  std::vector<float> found = push(stream, piece_of(signal, 0, 3));
  EXPECT_TRUE(found.empty());
  EXPECT_EQ(stream.pending(), 3);
  for (const float x : push(stream, piece_of(signal, 3, 8))) found.push_back(x);
  EXPECT_EQ(found.size(), 2u);
  for (const float x : flush(stream)) found.push_back(x);
  EXPECT_EQ(found, expected);
  EXPECT_EQ(floats_of(stream.state(0)), std::vector<float>{state});
}

TEST_F(StreamTest, AModelThatNeedsAllOfTheSignalIsRefusedWithTheNodeThatDoes) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[1,T] x) => (float[1,T] y) { y = Softmax <axis = 1> (x) })");
  const auto stream = Stream::open(session.shared(), timed("x", 1));
  ASSERT_FALSE(stream.ok());
  EXPECT_EQ(stream.error().code(), Code::kInvalidArgument);
  EXPECT_NE(stream.error().message().find("Softmax"), std::string::npos) << stream.error().message();
}

// Streams of a pool run as entries of one batch, and each gives the results that it gives alone.
TEST_F(StreamTest, StreamsOfAPoolGiveWhatTheyGiveAlone) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[B,T] x) => (float[B,T] y) <int64[1] axis = {1}, int64[1] zero = {0}> {
      shape = Shape <start = 0, end = 1> (x)
      h0 = ConstantOfShape (shape)
      last, y = Scan <num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [1],
                      body = b (float[B] s, float[B] e) => (float[B] t, float[B] o) {
        a = Add (s, e)
        t = Tanh (a)
        o = Identity (t)
      }> (h0, x)
    })");
  auto pool = StreamPool::open(session.shared(), timed("x", 1), 3);
  ASSERT_TRUE(pool.ok()) << pool.error().to_string();
  EXPECT_EQ(pool->why_single(), "");
  std::vector<Stream> alone;
  for (int i = 0; i < 3; ++i) alone.push_back(open(session, timed("x", 1)));
  const std::vector<std::vector<int64_t>> ticks{{0, 1}, {2, 0, 1}, {1}, {0, 1, 2}, {2, 1, 0}};
  for (size_t tick = 0; tick < ticks.size(); ++tick) {
    std::vector<AnyValue> values;
    std::vector<Feed> feeds;
    std::vector<StreamPool::Chunk> chunks;
    for (const int64_t id : ticks[tick]) values.emplace_back(some_floats({1, 5 + id}, static_cast<int>(tick)));
    for (const AnyValue& value : values) feeds.push_back({"x", &value});
    for (size_t i = 0; i < values.size(); ++i) chunks.push_back({ticks[tick][i], std::span(feeds).subspan(i, 1)});
    auto pushed = pool->push(chunks);
    ASSERT_TRUE(pushed.ok()) << pushed.error().to_string();
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(floats_of((*pushed)[i].outputs[0]), push(alone[static_cast<size_t>(ticks[tick][i])], values[i]))
          << tick;
    }
  }
  EXPECT_EQ(pool->size(), 3u);
  EXPECT_LT(pool->runs(), 20);
  EXPECT_TRUE(pool->leave(1).ok());
  EXPECT_EQ(pool->leave(1).code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace treadle::testing_support
