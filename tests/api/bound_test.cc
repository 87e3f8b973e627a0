// Steps of streams with bound arguments give the results of pushes, to the last bit, whatever happens in between.

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "treadle/treadle.hpp"

namespace {

using treadle::Feeds;
using treadle::Session;
using treadle::Stream;
using treadle::StreamOptions;
using treadle::Value;

constexpr const char* kHeader = "<ir_version: 9, opset_import: [\"\" : 20]>\n";

// A cell that the caller steps; its weights come with each push, or are bound.
constexpr const char* kCell = R"(
cell (float[B, 16] x, float[B, 16] h, float[16, 16] w) => (float[B, 16] y, float[B, 16] hN) {
  a = MatMul (x, w)
  b = Add (a, h)
  hN = Tanh (b)
  y = Relu (hN)
})";

// Two states of which one takes the other's value, and an output that is an input.
constexpr const char* kShifted = R"(
shifted (float[2] x, float[2] a, float[2] b) => (float[2] y, float[2] same, float[2] aN, float[2] bN) {
  y = Add (x, b)
  same = Identity (x)
  aN = Identity (x)
  bN = Identity (a)
})";

// Windows of 4 samples behind 2 of context: an output that is stacked, one that is joined along its second axis.
constexpr const char* kWindows = R"(
windows (float[1, W] x, float[1, 1] s) => (float[1, 1] level, float[1, W] scaled, float[1, 1] sN)
<int64[1] one = {1}, float half = {0.5}> {
  level = ReduceSum (x, one)
  t = Mul (s, half)
  sN = Add (t, level)
  scaled = Add (x, sN)
})";

// Windows along the last of three axes, which have to be cut out.
constexpr const char* kChannels = R"(
channels (float[1, 3, W] x, float[1, 3, 1] s) => (float[1, 3, W] y, float[1, 3, 1] sN)
<int64[1] two = {2}> {
  sum = ReduceSum (x, two)
  sN = Tanh (sum)
  y = Add (x, s)
})";

// Over time: a causal convolution, a recurrence, and the recurrence's state.
constexpr const char* kOverTime = R"(
signal (float[1, 4, T] x) => (float[T, 1, 1, 8] y, float[1, 1, 8] last)
<int64[3] kernel = {4, 4, 3}, int64[3] ws = {1, 24, 4}, int64[3] rs = {1, 24, 8}> {
  k = ConstantOfShape <value: tensor = float {0.1}> (kernel)
  w = ConstantOfShape <value: tensor = float {0.2}> (ws)
  r = ConstantOfShape <value: tensor = float {0.05}> (rs)
  c = Conv <pads = [2, 0]> (x, k)
  t = Transpose <perm = [2, 0, 1]> (c)
  y, last = GRU <hidden_size = 8> (t, w, r)
})";

// Over time, two samples for each frame, three that look ahead.
constexpr const char* kStrided = R"(
signal (float[1, 4, T] x) => (float[F, 1, 1, 8] y)
<int64[3] kernel = {4, 4, 5}, int64[3] ws = {1, 32, 4}, int64[3] rs = {1, 32, 8}> {
  k = ConstantOfShape <value: tensor = float {0.1}> (kernel)
  w = ConstantOfShape <value: tensor = float {0.2}> (ws)
  r = ConstantOfShape <value: tensor = float {0.05}> (rs)
  c = Conv <pads = [1, 3], strides = [2]> (x, k)
  t = Transpose <perm = [2, 0, 1]> (c)
  y = LSTM <hidden_size = 8> (t, w, r)
})";

// Over time: a loop over two signals, which begins with a bound state.
constexpr const char* kScan = R"(
signal (float[T, 3] x, float[T, 3] z, float[3] s0) => (float[3] s, float[T, 3] y) {
  s, y = Scan <num_scan_inputs = 2, body = step (float[3] s_in, float[3] xi, float[3] zi) => (float[3] s_out, float[3] yi) {
    a = Add (s_in, xi)
    m = Mul (a, zi)
    s_out = Tanh (m)
    yi = Mul (s_out, s_out)
  }> (s0, x, z)
})";

// A state that grows, and sizes that depend on contents: every step is an ordinary push.
constexpr const char* kGrowing = R"(
growing (float[1, 2] x, float[P, 2] past) => (float[P, 2] present, float[2] sum) <int64[1] zero = {0}> {
  present = Concat <axis = 0> (past, x)
  sum = ReduceSum <keepdims = 0> (present, zero)
})";

constexpr const char* kChosen = R"(
chosen (float[4] x) => (float[N] y) {
  n = NonZero (x)
  f = Cast <to = 1> (n)
  y = Flatten (f)
})";

using Inputs = std::vector<std::pair<std::string, std::vector<int64_t>>>;

struct Setting {
  std::string name;
  const char* model;
  Inputs inputs;  // with the sizes of a step
  std::function<StreamOptions()> options;
  int64_t axis = -1;     // of time; -1: there is none
  bool is_bound = true;  // false: steps are ordinary pushes
};

void refill(const Value& value, unsigned seed) {
  std::minstd_rand random(seed + 1);
  auto* data = static_cast<float*>(treadle_tensor_mutable_data(value.get()));
  for (int64_t i = 0; i < value.count(); ++i) data[i] = static_cast<float>(random() % 1000) * 0.002F - 0.9F;
}

Value numbers(const std::vector<int64_t>& dims, unsigned seed) {
  Value value = Value::tensor(1, dims);
  refill(value, seed);
  return value;
}

StreamOptions binding(const char* name, const std::vector<int64_t>& dims) {
  StreamOptions options;
  options.bind(name, numbers(dims, 9));
  return options;
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  const auto along = [](int64_t axis, std::vector<std::string> names, int64_t hop = 0, int64_t context = 0) {
    return [=] {
      StreamOptions options;
      for (const std::string& name : names) options.time(name, axis);
      options.hop(hop, context);
      return options;
    };
  };
  const auto steps = [] { return StreamOptions(); };
  all.push_back({"Cell", kCell, {{"x", {1, 16}}}, [] { return binding("w", {16, 16}); }});
  all.push_back({"CellOfThree", kCell, {{"x", {3, 16}}, {"w", {16, 16}}}, steps});
  all.push_back({"Shifted", kShifted, {{"x", {2}}}, [] {
                   StreamOptions options;
                   options.state("a", "aN").state("b", "bN");
                   return options;
                 }});
  for (const auto& [hop, context] : {std::pair{4, 0}, {4, 2}, {1, 3}, {1, 0}}) {
    for (const int64_t samples : {1, 3, 4, 8, 12}) {
      const std::string name = std::to_string(hop) + "After" + std::to_string(context) + "By" + std::to_string(samples);
      const bool is_whole = samples % hop == 0;
      all.push_back(
          {"Windows" + name, kWindows, {{"x", {1, samples}}}, along(1, {"x", "scaled"}, hop, context), 1, is_whole});
      all.push_back(
          {"Channels" + name, kChannels, {{"x", {1, 3, samples}}}, along(2, {"x", "y"}, hop, context), 2, is_whole});
    }
  }
  for (const int64_t samples : {1, 2, 3, 16}) {
    const std::string name = std::to_string(samples);
    all.push_back({"OverTime" + name, kOverTime, {{"x", {1, 4, samples}}}, along(2, {"x"}), 2});
    all.push_back({"Strided" + name, kStrided, {{"x", {1, 4, samples}}}, along(2, {"x"}), 2, samples % 2 == 0});
    all.push_back({"Scan" + name,
                   kScan,
                   {{"x", {samples, 3}}, {"z", {samples, 3}}},
                   [] {
                     StreamOptions options = binding("s0", {3});
                     options.time("x", 0).time("z", 0);
                     return options;
                   },
                   0});
  }
  all.push_back({"Growing",
                 kGrowing,
                 {{"x", {1, 2}}},
                 [] {
                   StreamOptions options;
                   options.state("past", "present");
                   return options;
                 },
                 -1,
                 false});
  all.push_back({"Chosen", kChosen, {{"x", {4}}}, steps, -1, false});
  return all;
}

// Sizes and bytes.
std::string contents(const Value& value) {
  std::string text = value.type_text();
  if (value.kind() == TREADLE_TENSOR && value.bytes() > 0) {
    text.append(static_cast<const char*>(treadle_tensor_data(value.get())), value.bytes());
  }
  return text;
}

std::vector<std::string> contents(const std::vector<Value>& values) {
  std::vector<std::string> all;
  for (const Value& value : values) all.push_back(contents(value));
  return all;
}

Session session_of(const Setting& setting, const char* jit) {
  const std::string text = kHeader + std::string(setting.model);
  treadle::SessionOptions options;
  options.set("threads", "1").set("jit", jit);
  return Session(text.data(), text.size(), options);
}

// A stream with its inputs and results.
class Side {
 public:
  Side(const Session& session, const Setting& setting) : stream(session, setting.options()) {
    for (const auto& [name, dims] : setting.inputs) feeds.emplace_back(name, numbers(dims, 0));
  }
  void fill(unsigned seed) {
    for (const auto& [name, value] : feeds) refill(value, seed + static_cast<unsigned>(name[0]));
  }
  void push() { stream.push_into(feeds, results); }
  void bind() { bound = &stream.bind(feeds); }
  void step() { stream.step(); }
  const std::vector<Value>& given() const { return bound ? *bound : results; }

  Stream stream;
  Feeds feeds;
  std::vector<Value> results;                 // of pushes
  const std::vector<Value>* bound = nullptr;  // of steps
  std::vector<Value> rest;                    // of an event
};

class Bound : public ::testing::TestWithParam<Setting> {};

void expect_alike(const Side& stepped, const Side& pushed, const std::string& when) {
  ASSERT_EQ(contents(stepped.given()), contents(pushed.given())) << when;
  ASSERT_EQ(contents(stepped.rest), contents(pushed.rest)) << when;
  ASSERT_EQ(stepped.stream.pending(), pushed.stream.pending()) << when;
  for (size_t i = 0; i < pushed.stream.state_names().size(); ++i) {
    ASSERT_EQ(contents(stepped.stream.state(i)), contents(pushed.stream.state(i))) << when;
  }
}

// What happens to both streams between steps.
using Event = std::function<void(Side&)>;

// One sample more along `axis` of each input.
Feeds longer(const Feeds& feeds, int64_t axis) {
  Feeds all;
  for (const auto& [name, value] : feeds) {
    std::vector<int64_t> dims = value.dims();
    ++dims[static_cast<size_t>(axis)];
    all.emplace_back(name, numbers(dims, 3));
  }
  return all;
}

std::map<std::string, Event> events(const Setting& setting) {
  std::map<std::string, Event> all;
  all["nothing"] = [](Side&) {};
  all["reset"] = [](Side& side) { side.stream.reset(); };
  all["flush"] = [](Side& side) {
    try {
      side.rest = side.stream.flush();
    } catch (const treadle::Error&) {
    }
    try {
      side.stream.push(side.feeds);
    } catch (const treadle::Error&) {
      side.stream.reset();
    }
  };
  all["save and load"] = [](Side& side) { side.stream.load(side.stream.save()); };
  all["load of an earlier one"] = [](Side& side) {
    const std::string before = side.stream.save();
    side.stream.push(side.feeds);
    side.stream.load(before);
  };
  all["a state"] = [](Side& side) {
    const std::vector<std::string> names = side.stream.state_names();
    if (!names.empty()) side.stream.set_state(names[0], numbers(side.stream.state(0).dims(), 5));
  };
  if (setting.axis >= 0) {
    all["a longer push"] = [&setting](Side& side) { side.stream.push(longer(side.feeds, setting.axis)); };
  }
  all["a pushed chunk"] = [](Side& side) { side.stream.push(side.feeds); };
  return all;
}

TEST_P(Bound, StepsAreLikePushes) {
  const Setting& setting = GetParam();
  for (const char* jit : {"off", "always"}) {
    const Session session = session_of(setting, jit);
    for (const auto& [what, event] : events(setting)) {
      Side stepped(session, setting), pushed(session, setting);
      stepped.bind();
      unsigned seed = 0;
      const auto both = [&](int times) {
        for (int i = 0; i < times; ++i) {
          stepped.fill(++seed);
          pushed.fill(seed);
          stepped.step();
          pushed.push();
          expect_alike(stepped, pushed, jit + (" " + what) + ", step " + std::to_string(seed));
          if (::testing::Test::HasFatalFailure()) return;
        }
      };
      both(9);
      if (::testing::Test::HasFatalFailure()) return;
      Stream fork_of_stepped = stepped.stream, fork_of_pushed = pushed.stream;
      event(stepped);
      event(pushed);
      expect_alike(stepped, pushed, jit + (" " + what));
      both(9);
      if (::testing::Test::HasFatalFailure()) return;
      EXPECT_EQ(contents(fork_of_stepped.push(stepped.feeds)), contents(fork_of_pushed.push(stepped.feeds))) << what;
      EXPECT_EQ(stepped.stream.text().find("steps are bound") != std::string::npos, setting.is_bound)
          << stepped.stream.text();
    }
  }
}

class BoundInPlace : public ::testing::TestWithParam<Setting> {};

TEST_P(BoundInPlace, ResultsStayWhereTheyAre) {
  const Setting& setting = GetParam();
  const Session session = session_of(setting, "off");
  Side side(session, setting);
  for (int i = 0; i < 12; ++i) side.push();
  side.bind();
  std::vector<const void*> places;
  for (const Value& value : side.given()) places.push_back(treadle_tensor_data(value.get()));
  for (int i = 0; i < 20; ++i) side.step();
  for (size_t i = 0; i < places.size(); ++i) EXPECT_EQ(treadle_tensor_data(side.given()[i].get()), places[i]);
}

std::vector<Setting> bound_settings() {
  std::vector<Setting> all = settings();
  std::erase_if(all, [](const Setting& setting) { return !setting.is_bound; });
  return all;
}

std::string name_of(const ::testing::TestParamInfo<Setting>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Settings, Bound, ::testing::ValuesIn(settings()), name_of);
INSTANTIATE_TEST_SUITE_P(Settings, BoundInPlace, ::testing::ValuesIn(bound_settings()), name_of);

Session cell() {
  return session_of({"", kCell, {}, {}}, "off");
}

TEST(Binding, AStepTakesInputsAndGivesResultsInPlace) {
  const Session session = cell();
  Side side(session, {"", kCell, {{"x", {1, 16}}}, [] { return binding("w", {16, 16}); }});
  side.bind();
  side.step();
  for (int i = 0; i < 3; ++i) {
    const Value kept = side.given()[0];  // shares memory: the step must not overwrite it
    const std::string before = contents(kept);
    side.fill(static_cast<unsigned>(i));
    side.step();
    EXPECT_EQ(contents(kept), before);
  }
}

TEST(Binding, WhatIsNotBoundHasNoSteps) {
  const Session session = cell();
  Side side(session, {"", kCell, {{"x", {1, 16}}}, [] { return binding("w", {16, 16}); }});
  EXPECT_THROW(side.step(), treadle::Error);
  side.bind();
  side.step();
  Stream fork = side.stream;
  EXPECT_THROW(fork.step(), treadle::Error);
  side.stream.unbind();
  EXPECT_THROW(side.step(), treadle::Error);
}

TEST(Binding, WhatDoesNotFitIsRefusedAndChangesNothing) {
  const Session session = cell();
  Side side(session, {"", kCell, {{"x", {1, 16}}}, [] { return binding("w", {16, 16}); }});
  side.bind();
  Feeds wrong = {{"x", numbers({1, 15}, 0)}};
  EXPECT_THROW(side.stream.bind(wrong), treadle::Error);
  // A result over what the step reads.
  std::vector<float> memory(32);
  Feeds feeds = {{"x", Value::borrow(memory.data(), {1, 16})}};
  std::vector<Value> over;
  over.push_back(Value::borrow(memory.data() + 8, {1, 16}));
  EXPECT_THROW(side.stream.bind(feeds, std::move(over)), treadle::Error);
  side.step();
}

TEST(Binding, AFailedStepChangesNothing) {
  const Session session = session_of({"",
                                      R"(
pick (int64[1] i, float[2] s) => (float[1] y, float[2] sN) {
  y = Gather (s, i)
  one = Constant <value_float = 1.0> ()
  sN = Add (s, one)
})",
                                      {},
                                      {}},
                                     "off");
  Stream stream(session, StreamOptions());
  std::vector<int64_t> index = {1};
  Feeds feeds = {{"i", Value::borrow(index.data(), {1})}};
  const std::vector<Value>& results = stream.bind(feeds);
  for (int i = 0; i < 4; ++i) stream.step();
  EXPECT_EQ(results[0].data<float>()[0], 3);
  index[0] = 7;
  EXPECT_THROW(stream.step(), treadle::Error);
  EXPECT_THROW(stream.step(), treadle::Error);
  index[0] = 0;
  stream.step();
  EXPECT_EQ(results[0].data<float>()[0], 4);
}

TEST(BoundRuns, AreLikeRuns) {
  for (const Setting& setting : settings()) {
    if (setting.name != "Cell" && setting.name != "CellOfThree" && !setting.name.starts_with("Over") &&
        !setting.name.starts_with("Scan") && setting.name != "Chosen" && setting.name != "Shifted") {
      continue;
    }
    for (const char* jit : {"off", "always"}) {
      const Session session = session_of(setting, jit);
      Feeds feeds;
      for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) {
        std::vector<int64_t> dims;
        const treadle::Type type = session.type(TREADLE_INPUT, i);
        for (int64_t axis = 0; axis < type.rank(); ++axis) dims.push_back(type.dim(axis) > 0 ? type.dim(axis) : 3);
        if (setting.name.starts_with("Over")) dims = {1, 4, 16};
        if (setting.name == "Cell" && i < 2) dims = {1, 16};
        feeds.emplace_back(session.name(TREADLE_INPUT, i), numbers(dims, 0));
      }
      treadle::BoundRun bound = session.bind(feeds);
      const std::vector<Value>& results = bound.results();
      std::vector<const void*> places;
      for (const Value& value : results) places.push_back(treadle_tensor_data(value.get()));
      for (unsigned i = 0; i < 20; ++i) {
        for (const auto& [name, value] : feeds) refill(value, i + static_cast<unsigned>(name[0]));
        bound.run();
        ASSERT_EQ(contents(results), contents(session.run(feeds))) << setting.name << " " << jit << " " << i;
      }
      EXPECT_EQ(bound.why().empty(), setting.name != "Chosen") << bound.why();
      for (size_t i = 0; i < places.size() && bound.why().empty(); ++i) {
        EXPECT_EQ(treadle_tensor_data(results[i].get()), places[i]);
      }
    }
  }
}

TEST(BoundRuns, TakeSomeOutputsAndMemoryOfTheCaller) {
  const Session session = cell();
  std::vector<float> memory(16);
  std::vector<Value> results;
  results.push_back(Value::borrow(memory.data(), {1, 16}));
  const Feeds feeds = {{"x", numbers({1, 16}, 1)}, {"h", numbers({1, 16}, 2)}, {"w", numbers({16, 16}, 3)}};
  treadle::BoundRun bound = session.bind(feeds, {"hN"}, std::move(results));
  bound.run();
  const Value expected = session.run(feeds, {"hN"})[0];
  EXPECT_EQ(std::memcmp(memory.data(), expected.data<float>(), expected.bytes()), 0);
}

TEST(BoundRuns, WhatDoesNotFitIsRefused) {
  const Session session = cell();
  const Value x = numbers({1, 16}, 1), w = numbers({16, 16}, 3);
  EXPECT_THROW(session.bind({{"x", x}, {"w", w}}), treadle::Error);
  EXPECT_THROW(session.bind({{"x", x}, {"h", x}, {"w", numbers({16, 15}, 1)}}), treadle::Error);
  EXPECT_THROW(session.bind({{"x", x}, {"h", x}, {"w", w}}, {"z"}), treadle::Error);
  std::vector<Value> over;
  over.push_back(x);
  EXPECT_THROW(session.bind({{"x", x}, {"h", x}, {"w", w}}, {"hN"}, std::move(over)), treadle::Error);
}

TEST(Binding, ThreadsStepStreamsOfOneSession) {
  const Session session = cell();
  const Setting setting{"", kCell, {{"x", {1, 16}}}, [] { return binding("w", {16, 16}); }};
  std::vector<std::thread> threads;
  std::vector<std::string> ends(4);
  for (size_t t = 0; t < ends.size(); ++t) {
    threads.emplace_back([&, t] {
      Side side(session, setting);
      side.bind();
      for (unsigned i = 0; i < 500; ++i) {
        side.fill(i);
        side.step();
      }
      ends[t] = contents(side.given()[0]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& end : ends) EXPECT_EQ(end, ends[0]);
}

}  // namespace
