// The parts of a push: the feeds, the runs, and that carried data does not change before commit().
#include "stream/push.h"

#include <gtest/gtest.h>

#include "stream/layout.h"
#include "stream/stream.h"
#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

// Two samples for each frame, over a state that the model carries along time.
constexpr char kOverTime[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (float[1,1,T] x) => (float[1,1,U] y) <float[1,1,2] w = {1, 1}> { y = Conv <strides = [2]> (x, w) })";
constexpr char kWindow[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (float[B,6] x, float gain, float[B] h0) => (float[B] y, float[B] hn) <int64[1] axis = {1}> {
    sum = ReduceSum <keepdims = 0> (x, axis)
    scaled = Mul (sum, gain)
    hn = Add (h0, scaled)
    y = Identity (scaled)
  })";
constexpr char kSteps[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (float[2] x, float[2] h0) => (float[2] y, float[2] hn) { hn = Add (h0, x) y = Neg (hn) })";

class PushTest : public testing::Test {
 protected:
  void open(const TextSession& session, StreamOptions options) {
    auto layout = StreamLayout::make(session.shared(), std::move(options));
    ASSERT_TRUE(layout.ok()) << layout.error().to_string();
    layout_ = *layout;
    carried_ = Carried::begin(*layout_).value();
  }
  Status begin(const Feeds& feeds, bool last = false) { return push_.begin(*layout_, carried_, feeds_of(feeds), last); }
  Result<size_t> make(const Feeds& feeds, bool last = false) {
    outputs_.resize(layout_->outputs.size());
    std::vector<AnyValue*> places;
    for (AnyValue& output : outputs_) places.push_back(&output);
    return push_.make(*layout_, carried_, feeds_of(feeds), last, places, {});
  }
  static StreamOptions timed(int64_t axis, int64_t hop = 0, int64_t context = 0) {
    StreamOptions options;
    options.time = {{"x", "", axis}};
    options.hop = hop;
    options.context = context;
    return options;
  }

  std::shared_ptr<const StreamLayout> layout_;
  Carried carried_;
  Push push_;
  std::vector<AnyValue> outputs_;
};

TEST_F(PushTest, WholeHopsOverTimeAreOneRun) {
  const TextSession session(kOverTime);
  open(session, timed(2));
  const OverTime& over_time = *layout_->over_time;
  ASSERT_TRUE(begin({{"x", some_floats({1, 1, 1})}}).ok());
  EXPECT_EQ(push_.block().session, nullptr);
  ASSERT_TRUE(begin({{"x", some_floats({1, 1, 5})}}).ok());
  EXPECT_EQ(push_.block().session, over_time.start.get());
  EXPECT_EQ(push_.block().count, 1u);
  EXPECT_EQ(push_.block().samples, 4);
  EXPECT_EQ(make({{"x", some_floats({1, 1, 5})}}).value(), 1u);
  EXPECT_EQ(carried_.pending, 1);
  ASSERT_TRUE(begin({{"x", some_floats({1, 1, 3})}}).ok());
  EXPECT_EQ(push_.block().session, over_time.steady.get());
  EXPECT_EQ(push_.block().hops, 2);
  ASSERT_TRUE(begin({}, true).ok());
  EXPECT_EQ(push_.block().session, over_time.last.get());
  EXPECT_EQ(push_.block().samples, 1);
  EXPECT_EQ(make({}, true).value(), 1u);
  EXPECT_EQ(begin({{"x", some_floats({1, 1, 3})}}).code(), Code::kInvalidArgument);  // the stream has ended
}

TEST_F(PushTest, ASignalShorterThanTheFirstBlockIsRunByTheModel) {
  const TextSession session(kOverTime);
  open(session, timed(2));
  EXPECT_EQ(make({{"x", some_floats({1, 1, 1})}}).value(), 0u);
  ASSERT_TRUE(begin({}, true).ok());
  EXPECT_EQ(push_.block().session, layout_->session.get());
}

TEST_F(PushTest, AWindowIsARunPerHop) {
  const TextSession session(kWindow);
  open(session, timed(1, 4, 2));
  const AnyValue gain = scalar(ElementType::kFloat, 2.0F);
  EXPECT_EQ(make({{"x", some_floats({3, 9})}, {"gain", gain}}).value(), 2u);
  EXPECT_EQ(outputs_[0].tensor().dims(), (Dims{2, 3}));
  EXPECT_EQ(carried_.states[0].tensor().dims(), Dims{3});  // the batch has the samples' size
  EXPECT_EQ(carried_.pending, 1);
  EXPECT_EQ(carried_.tails[0].dims(), (Dims{3, 3}));
  EXPECT_EQ(make({{"x", some_floats({3, 2})}, {"gain", gain}}).value(), 0u);
  EXPECT_EQ(outputs_[0].tensor().dims(), (Dims{0, 3}));
  EXPECT_EQ(make({{"gain", gain}}, true).value(), 1u);  // padded with zeros
  EXPECT_EQ(carried_.pending, 0);
  EXPECT_EQ(make({{"gain", gain}}, true).value(), 0u);
}

TEST_F(PushTest, WithoutTimeAPushIsARun) {
  const TextSession session(kSteps);
  open(session, {});
  EXPECT_EQ(make({}, true).value(), 0u);
  EXPECT_EQ(make({{"x", some_floats({2})}}).value(), 1u);
  EXPECT_EQ(floats_of(carried_.states[0]), floats_of(some_floats({2})));
}

TEST_F(PushTest, WhatIsFedIsCheckedBeforeAnythingRuns) {
  const TextSession session(kWindow);
  open(session, timed(1, 4, 2));
  const AnyValue x = some_floats({1, 4}), gain = scalar(ElementType::kFloat, 1.0F), state = some_floats({1});
  const auto says = [&](const Feeds& feeds, const char* text, bool last = false) {
    const Status status = begin(feeds, last);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.to_string().find(text), std::string::npos) << status.to_string();
  };
  says({{"gain", gain}}, "samples of input 'x' are missing");
  says({{"x", some_floats({4})}, {"gain", gain}}, "input 'x' takes");
  says({{"x", x}, {"gain", gain}, {"gain", gain}}, "'gain' is bound, or given twice");
  says({{"x", x}, {"h0", state}}, "'h0' is a state of the stream");
  says({{"x", x}, {"z", x}}, "no input 'z'");
  says({{"x", x}}, "takes no samples of 'x'", true);
  EXPECT_EQ(make({{"x", x}}).status().code(), Code::kInvalidArgument);  // the model's input `gain` is missing
  EXPECT_EQ(carried_.pending, 0);
  EXPECT_FALSE(carried_.tails[0].defined());
}

TEST_F(PushTest, NothingThatIsCarriedChangesBeforeCommit) {
  const TextSession session(kWindow);
  open(session, timed(1, 4, 2));
  const AnyValue gain = scalar(ElementType::kFloat, 1.0F);
  ASSERT_TRUE(make({{"x", some_floats({1, 7})}, {"gain", gain}}).ok());
  const std::vector<float> state = floats_of(carried_.states[0]), tail = floats_of(carried_.tails[0]);
  ASSERT_TRUE(begin({{"x", some_floats({1, 9})}, {"gain", gain}}).ok());
  EXPECT_EQ(push_.block().count, 3u);
  EXPECT_EQ(floats_of(carried_.states[0]), state);
  EXPECT_EQ(floats_of(carried_.tails[0]), tail);
  EXPECT_EQ(carried_.pending, 3);
}

// Rows of a model in the reference interpreter, whose values have no places, are joined by the same rules.
TEST_F(PushTest, TheReferenceInterpreterGivesTheSame) {
  const AnyValue gain = scalar(ElementType::kFloat, 2.0F);
  std::vector<std::vector<float>> found;
  for (const SessionOptions& options : {interpreted(), by_reference()}) {
    const TextSession session(kWindow, options);
    open(session, timed(1, 4, 2));
    push_ = {};
    outputs_.clear();
    for (const int64_t size : {3, 9, 4, 8}) {
      ASSERT_TRUE(make({{"x", some_floats({2, size})}, {"gain", gain}}).ok());
      found.push_back(floats_of(outputs_[0]));
    }
    found.push_back(floats_of(carried_.states[0]));
  }
  for (size_t i = 0; i < found.size() / 2; ++i) EXPECT_EQ(found[i], found[found.size() / 2 + i]) << i;
}

}  // namespace
}  // namespace treadle::testing_support
