// Runs that are looked into: every value in every iteration is the reference interpreter's, and what is found has the
// place where it was made.
#include "report/trace.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "reference/interpreter.h"
#include "session/origins.h"
#include "support/text_session.h"

namespace treadle::testing_support {
namespace {

AnyValue floats(const std::vector<float>& numbers) {
  Tensor t = *Tensor::allocate(ElementType::kFloat, {static_cast<int64_t>(numbers.size())});
  std::copy(numbers.begin(), numbers.end(), t.mutable_data<float>());
  return t;
}

AnyValue truths(const std::vector<bool>& values) {
  Tensor t = *Tensor::allocate(ElementType::kBool, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.mutable_data<bool>());
  return t;
}

using Contents = std::vector<AnyValue>;
using ByName = std::map<std::string, Contents>;

// All values of a model by the reference interpreter.
class Expected final : public reference::Guard {
 public:
  Status iteration() override { return {}; }
  Status step() override { return {}; }
  void made(const ir::Value& value, const AnyValue& contents) override {
    values[session::path_of(value)].push_back(contents);
  }
  ByName values;
};

struct Seen {
  report::Trace trace;
  ByName values;
  std::map<std::string, std::vector<int64_t>> iterations;
  std::vector<AnyValue> results;
};

Seen seen_of(const Session& session, const Feeds& feeds, report::TraceOptions options = {}) {
  Seen seen;
  options.seen = [&](const report::ValueSeries& series, std::span<const int64_t> iterations,
                     const AnyValue& value) -> Status {
    seen.values[series.name()].push_back(value);
    auto& at = seen.iterations[series.name()];
    at.insert(at.end(), iterations.begin(), iterations.end());
    return {};
  };
  const Status status = report::trace(session, feeds_of(feeds), seen.results, options, {}, seen.trace);
  EXPECT_TRUE(status.ok()) << status.to_string();
  return seen;
}

const report::ValueSeries& series(const report::Trace& trace, std::string_view name) {
  for (const report::ValueSeries& one : trace.values) {
    if (one.name() == name) return one;
  }
  ADD_FAILURE() << "no value " << name;
  return trace.values.at(0);
}

// A Loop whose body has an If and a Scan backwards over a captured value; its rows, a list, and states of which one has
// sizes of the run, and two change places.
constexpr char kNested[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (int64 m, float[3,2] x, float[n] v, seq(float[a]) before)
      => (float[2] last, float[k,2] rows, float[p] long, seq(float[a]) after, float[2] one, float[2] two, float[2] lstm) <
      float half = {0.5}, float zero = {0}, bool go = {1}, int64[1] axis = {0}, float[1,8,2] w = {1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2},
      float[1,8,2] r = {1,2,3,4,5,6,7,8,9,8,7,6,5,4,3,2}, int64[3] sizes = {3,1,2}> {
    none = Slice (v, axis, axis)
    start = ReduceSum <keepdims = 0> (x, axis)
    other = Neg (start)
    last, long, after, one, two, rows = Loop (m, go, start, none, before, start, other) <body = b
        (int64 i, bool c, float[2] s, float[q] list, seq(float[a]) have, float[2] left, float[2] right)
        => (bool d, float[2] t, float[r] longer, seq(float[a]) more, float[2] right, float[2] left, float[2] row) {
      total = ReduceSum <keepdims = 0> (s)
      positive = Greater (total, zero)
      u = If (positive) <then_branch = yes () => (float[2] y) { y = Mul (s, half) },
                         else_branch = no () => (float[2] z) { w = Neg (s)  z = Add (w, half) }>
      same = Shape (s)
      flat = Reshape (u, same)
      t, all = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = e (float[2] a, float[2] r)
          => (float[2] next, float[2] kept) {
        next = Add (a, r)
        kept = Mul (next, half)
      }> (flat, x)
      row = ReduceMax <keepdims = 0> (all, axis)
      longer = Concat <axis = 0> (list, v)
      more = SequenceInsert (have, row)
      d = Identity (go)
    }>
    threefold = Reshape (x, sizes)
    every, lstm_all = LSTM <hidden_size = 2> (threefold, w, r)
    axes = Constant <value = int64[2] {0, 1}> ()
    lstm = ReduceSum <keepdims = 0> (lstm_all, axes)
  })";

Feeds feeds(int64_t iterations) {
  Sequence none(Type::tensor(ElementType::kFloat));
  return {{"m", count_of(iterations)},
          {"x", some_floats({3, 2})},
          {"v", some_floats({2}, 1)},
          {"before", AnyValue(none.appended(AnyValue(some_floats({2}, 3))))}};
}

std::vector<AnyValue> values_of(const Feeds& feeds) {
  std::vector<AnyValue> inputs;
  for (const auto& [name, value] : feeds) inputs.push_back(value);
  return inputs;
}

TEST(Trace, SeesEachValueThatTheReferenceInterpreterMakes) {
  const kernels::ScopedIsa scope(Isa::kBaseline);
  for (const int threads : {1, 4}) {
    SessionOptions options = interpreted();
    options.threads = threads;
    const TextSession session(kNested, options);
    for (const int64_t iterations : {4, 1, 7}) {
      SCOPED_TRACE(iterations);
      Seen seen = seen_of(*session, feeds(iterations));
      expect_identical(seen.results, session.results(feeds(iterations)));
      Expected expected;
      ASSERT_TRUE(reference::run_graph(session->graph(), values_of(feeds(iterations)), &expected).ok());
      size_t compared = 0;
      for (const report::ValueSeries& of : seen.trace.values) {
        const std::string& name = of.name();
        const Contents& values = expected.values[name];
        if (!of.missing.empty() || values.empty()) continue;
        const Contents& found = seen.values[name];
        ASSERT_FALSE(found.empty()) << name;
        const bool is_fixed = found.size() == 1 && (of.depth() == 0 || seen.iterations[name][0] < 0);
        ASSERT_TRUE(found.size() == values.size() || is_fixed)
            << name << ": " << found.size() << " of " << values.size();
        for (size_t i = 0; i < values.size(); ++i) {
          EXPECT_TRUE(identical(found[is_fixed ? 0 : i], values[i])) << name << ", " << i;
          ++compared;
        }
      }
      EXPECT_GE(compared, static_cast<size_t>(20 + 12 * iterations));
    }
  }
}

TEST(Trace, HasStatisticsOfEachSample) {
  const TextSession session(kNested);
  const Seen seen = seen_of(*session, feeds(5));
  size_t compared = 0;
  for (const auto& [name, values] : seen.values) {
    const report::ValueSeries& of = series(seen.trace, name);
    ASSERT_EQ(of.samples.size(), values.size()) << name;
    EXPECT_EQ(of.iterations, seen.iterations.at(name)) << name;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].is_tensor()) continue;
      const Tensor& t = values[i].tensor();
      const kernels::Statistics expected = kernels::statistics_of(t.type(), t.raw(), t.element_count());
      EXPECT_EQ(of.samples[i].count, expected.count) << name;
      EXPECT_EQ(of.samples[i].low, expected.low) << name;
      EXPECT_EQ(of.samples[i].high, expected.high) << name;
      EXPECT_NEAR(of.samples[i].sum, expected.sum, 1e-5) << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 60u);
  // A list that grows: the statistics of all its elements together.
  const report::ValueSeries& list = series(seen.trace, "/Loop_3:body/more");
  ASSERT_EQ(list.samples.size(), 5u);
  EXPECT_EQ(list.samples[4].count, 12);
}

TEST(Trace, LooksAtTheChosenIterationsOnly) {
  const TextSession session(kNested);
  report::TraceOptions options;
  options.watch = {"t@1,3-4", "/Loop_3:body/s@::2", "next@2/0-1", "rows", "x"};
  Seen seen = seen_of(*session, feeds(6), options);
  EXPECT_EQ(seen.values.size(), 5u);
  EXPECT_EQ(seen.iterations["/Loop_3:body/t"], (std::vector<int64_t>{1, 3, 4}));
  EXPECT_EQ(seen.iterations["/Loop_3:body/s"], (std::vector<int64_t>{0, 2, 4}));
  EXPECT_EQ(seen.iterations["/Loop_3:body/Scan_5:body/next"], (std::vector<int64_t>{2, 0, 2, 1}));
  EXPECT_EQ(seen.values["rows"].size(), 1u);
  options.watch = {"s"};
  options.every = 3;
  seen = seen_of(*session, feeds(8), options);
  EXPECT_EQ(seen.iterations["/Loop_3:body/s"], (std::vector<int64_t>{0, 3, 6}));
}

TEST(Trace, SaysWhichNamesThereAre) {
  const TextSession session(kNested);
  report::TraceOptions options;
  options.watch = {"longr"};
  report::Trace trace;
  std::vector<AnyValue> results;
  const Status status = report::trace(*session, feeds_of(feeds(2)), results, options, {}, trace);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_EQ(status.message(), "the model has no value 'longr' (did you mean '/Loop_3:body/longer'?)");
}

TEST(Trace, KeepsFewerIterationsInBoundedMemory) {
  const TextSession session(kNested);
  report::TraceOptions options;
  options.watch = {"t", "s"};
  options.memory = 4000;
  const Seen seen = seen_of(*session, feeds(500), options);
  EXPECT_GE(seen.trace.every, 32);
  const report::ValueSeries& t = series(seen.trace, "/Loop_3:body/t");
  ASSERT_GE(t.samples.size(), 5u);
  EXPECT_LE(t.samples.size(), 24u);
  for (size_t i = 0; i < t.samples.size(); ++i) {
    EXPECT_EQ(t.iterations[i], static_cast<int64_t>(i) * seen.trace.every);
  }
}

TEST(Trace, RefusesBeforehandWhatDoesNotFit) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[1000,2] x, float[2] h) => (float[2] y) {
      y = Scan <num_scan_inputs = 1, body = b (float[2] a, float[2] e) => (float[2] s) { s = Add (a, e) }> (h, x)
    })");
  report::TraceOptions options;
  options.memory = 10000;
  report::Trace trace;
  std::vector<AnyValue> results;
  const Feeds given = {{"x", some_floats({1000, 2})}, {"h", some_floats({2})}};
  const Status status = report::trace(*session, feeds_of(given), results, options, {}, trace);
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("watch fewer values, every = "), std::string::npos) << status.message();
}

// --- what is found

report::Findings found(const std::string& text, const Feeds& given, const char* what = "nan") {
  SessionOptions as_written = interpreted();
  as_written.optimize = false;
  const TextSession session(text, as_written);
  report::TraceOptions options;
  options.statistics = false;
  options.find = what;
  report::Trace trace;
  std::vector<AnyValue> results;
  const Status status = report::trace(*session, feeds_of(given), results, options, {}, trace);
  EXPECT_TRUE(status.ok()) << status.to_string();
  EXPECT_TRUE(trace.found);
  return trace.found ? *trace.found : report::Findings();
}

// The logarithm of 3 - i, added to a state and to rows.
constexpr char kLogarithm[] = R"(<ir_version: 10, opset_import: ["" : 22]>
  g (int64 m, float[2] x) => (float[2] last, float[k,2] rows, float[2] fine) <float three = {3}, bool go = {1}> {
    last, rows = Loop (m, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] row) {
      f = Cast <to = 1> (i)
      q = Sub (three, f)
      l = Log (q)
      row = Add (s, l)
      t = Mul (row, three)
      d = Identity (go)
    }>
    fine = Relu (x)
  })";

TEST(Find, NamesTheNodeAndTheIterationThatMadeIt) {
  const report::Findings found_nan = found(kLogarithm, {{"m", count_of(7)}, {"x", some_floats({2})}});
  ASSERT_EQ(found_nan.reached, 1u);
  const report::FoundPlace& place = found_nan.places[0];
  EXPECT_EQ(place.op, "Log");
  EXPECT_EQ(place.node, "/Loop_0:body/Log_2");
  ASSERT_EQ(place.iterations.size(), 1u);
  EXPECT_EQ(place.iterations[0], (std::pair<std::string, int64_t>("/Loop_0", 4)));
  ASSERT_EQ(place.inputs.size(), 1u);
  EXPECT_EQ(place.inputs[0].label, "q");
  EXPECT_EQ(place.inputs[0].made_by, "Sub /Loop_0:body/Sub_1");
  EXPECT_EQ(place.inputs[0].iteration, 4);
  EXPECT_EQ(place.inputs[0].statistics.low, -1);
  ASSERT_EQ(found_nan.outputs.size(), 3u);
  EXPECT_EQ(found_nan.outputs[0].place, 0u);
  EXPECT_EQ(found_nan.outputs[1].place, 0u);
  EXPECT_EQ(found_nan.outputs[1].element, (std::vector<int64_t>{4, 0}));
  EXPECT_EQ(found_nan.outputs[2].place, SIZE_MAX);
  ASSERT_EQ(found_nan.outputs[1].path.size(), 2u);
  EXPECT_TRUE(found_nan.outputs[1].path[1].is_row);
  // -inf comes first, in iteration 3.
  const report::Findings found_inf = found(kLogarithm, {{"m", count_of(7)}, {"x", some_floats({2})}}, "inf");
  EXPECT_EQ(found_inf.places.at(0).iterations.at(0).second, 3);
}

TEST(Find, FindsNothingWhereNothingIs) {
  const report::Findings none = found(kLogarithm, {{"m", count_of(3)}, {"x", some_floats({2})}});
  EXPECT_FALSE(none.any());
  EXPECT_NE(report::to_text(none).find("no nan in "), std::string::npos);
}

// What an element of the result is made of decides, not what else is in the operands.
TEST(Find, FollowsTheElementsOfElementwiseOperators) {
  Tensor x = some_floats({4});
  x.mutable_data<float>()[2] = NAN;
  const report::Findings hidden = found(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[4] x, float[4] y) => (float[4] out) <bool[4] use_x = {1, 1, 0, 1}> {
      ones = Div (y, y)
      out = Where (use_x, x, ones)
    })",
                                        {{"x", x}, {"y", floats({0, 0, 0, 0})}});
  ASSERT_EQ(hidden.reached, 1u);
  EXPECT_EQ(hidden.places[0].op, "Div");
  EXPECT_EQ(hidden.places[0].result.statistics.nan, 4);
  ASSERT_EQ(hidden.places.size(), 2u);
  EXPECT_EQ(hidden.places[1].by, report::FoundPlace::By::kInput);
}

// Scalars, and sizes that only the run knows. There the condition has to outlive the choice to be looked at.
TEST(Find, FollowsTheElementsThatAConditionChooses) {
  const report::Findings chosen = found(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[2] x, float[4] y) => (float a, float[n] b, bool[n] nowhere) <int64 zero = {0}, bool no = {0}> {
      roots = Sqrt (x)
      logs = Log (x)
      root = Gather (roots, zero)
      log = Gather (logs, zero)
      a = Where (no, root, log)
      at = NonZero (y)
      flat = Squeeze (at)
      some = Gather (y, flat)
      lost = Sqrt (some)
      kept = Log (some)
      nowhere = Greater (some, some)
      b = Where (nowhere, lost, kept)
    })",
                                        {{"x", floats({-1, -2})}, {"y", floats({0, 0, -3, 0})}});
  ASSERT_EQ(chosen.outputs.size(), 3u);
  ASSERT_EQ(chosen.reached, 2u);
  EXPECT_EQ(chosen.places[chosen.outputs[0].place].op, "Log");
  EXPECT_EQ(chosen.places[chosen.outputs[1].place].op, "Log");
}

// NaN is in the imaginary part alone, of an element that is not the first.
TEST(Find, FollowsComplexNumbers) {
  Tensor x = *Tensor::allocate(ElementType::kComplex64, {2});
  const std::array<float, 4> parts = {1, 2, 3, NAN};
  std::memcpy(x.mutable_raw(), parts.data(), sizeof parts);
  const report::Findings through = found(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (complex64[2] x, complex64[2] other, bool[2] which) => (complex64[2] y) { y = Where (which, x, other) })",
                                         {{"x", x}, {"other", x}, {"which", truths({0, 1})}});
  ASSERT_EQ(through.reached, 1u);
  EXPECT_EQ(through.places[0].by, report::FoundPlace::By::kInput);
  EXPECT_EQ(through.places[0].result.name, "x");
  EXPECT_EQ(through.outputs[0].element, (std::vector<int64_t>{1}));
}

// A reshaped value lies in the memory of another one, of other sizes.
TEST(Find, FollowsElementsOfReshapedValues) {
  const report::Findings reshaped = found(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[6] x, float[2,1] scale) => (float[2,3] y) <int64[2] sizes = {2, 3}, float less = {0.5}> {
      negative = Sub (x, less)
      root = Sqrt (negative)
      square = Reshape (root, sizes)
      scaled = Mul (square, scale)
      y = Abs (scaled)
    })",
                                          {{"x", floats({1, 1, 1, 1, 0, 1})}, {"scale", some_floats({2, 1})}});
  ASSERT_EQ(reshaped.reached, 1u);
  EXPECT_EQ(reshaped.places.size(), 1u);
  EXPECT_EQ(reshaped.places[0].op, "Sqrt");
  EXPECT_EQ(reshaped.places[0].element, (std::vector<int64_t>{4}));
  EXPECT_EQ(reshaped.places[0].inputs.at(0).number, -0.5);
  EXPECT_EQ(reshaped.outputs[0].element, (std::vector<int64_t>{1, 1}));
}

TEST(Find, NamesInputsAndInitializers) {
  Tensor x = some_floats({3});
  x.mutable_data<float>()[1] = NAN;
  constexpr char kScaled[] = R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[3] x) => (float[3] out) <float[1] scale = {-1}> {
      root = Sqrt (scale)
      out = Mul (x, root)
    })";
  const report::Findings of_constant = found(kScaled, {{"x", some_floats({3})}});
  ASSERT_EQ(of_constant.reached, 1u);
  EXPECT_EQ(of_constant.places[0].by, report::FoundPlace::By::kConstant);
  EXPECT_EQ(of_constant.places[0].result.name, "root");
  EXPECT_EQ(of_constant.places[0].op, "Sqrt");  // before the run
  ASSERT_EQ(of_constant.places[0].inputs.size(), 1u);
  EXPECT_EQ(of_constant.places[0].inputs[0].name, "scale");
  const report::Findings of_input = found(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[3] x) => (float[3] out) { out = Neg (x) })",
                                          {{"x", x}});
  ASSERT_EQ(of_input.reached, 1u);
  EXPECT_EQ(of_input.places[0].by, report::FoundPlace::By::kInput);
  EXPECT_EQ(of_input.places[0].result.name, "x");
  EXPECT_EQ(of_input.places[0].element, (std::vector<int64_t>{1}));
}

TEST(Find, LooksForOtherNumbersToo) {
  const Feeds given = {{"m", count_of(12)}, {"x", some_floats({2})}};
  constexpr char kDoubling[] = R"(<ir_version: 10, opset_import: ["" : 22]>
    g (int64 m, float[2] x) => (float[2] last) <float much = {1e4}, float little = {1e-25}, bool go = {1}> {
      last = Loop (m, go, x) <body = b (int64 i, bool c, float[2] s) => (bool d, float[2] t) {
        small = Mul (s, little)
        smaller = Mul (small, little)
        u = Mul (s, much)
        t = Add (u, smaller)
        d = Identity (go)
      }>
    })";
  const report::Findings over = found(kDoubling, given, "over=1e6");
  EXPECT_EQ(over.places.at(0).node, "/Loop_0:body/Mul_2");
  EXPECT_EQ(over.places.at(0).iterations.at(0).second, 1);
  const report::Findings denormal = found(kDoubling, {{"m", count_of(4)}, {"x", some_floats({2})}}, "denormal");
  ASSERT_TRUE(denormal.any());
  EXPECT_EQ(denormal.reached, 0u);  // vanishes in the sum
  EXPECT_EQ(denormal.places[0].node, "/Loop_0:body/Mul_1");
  EXPECT_FALSE(report::Sought::parse("nan,zero,ove=3").ok());
  EXPECT_FALSE(report::Sought::parse("over=x").ok());
  EXPECT_TRUE(report::Sought::parse("nan,inf").ok());
}

// A state that carries NaN through many iterations is one step.
TEST(Find, CountsTheIterationsThatItWentThrough) {
  const report::Findings found_nan = found(kLogarithm, {{"m", count_of(300)}, {"x", some_floats({2})}});
  ASSERT_EQ(found_nan.reached, 1u);
  const report::FoundOutput& last = found_nan.outputs[0];
  ASSERT_EQ(last.path.size(), 2u);
  EXPECT_EQ(last.path[1].op, "Mul");
  EXPECT_EQ(last.path[1].first, 4);
  EXPECT_EQ(last.path[1].last, 299);
  EXPECT_EQ(last.path[1].times, 296);
}

TEST(Find, TellsWhatItSawBeforeTheRunFailed) {
  const TextSession session(R"(<ir_version: 10, opset_import: ["" : 22]>
    g (float[2] x, int64 i) => (float out) {
      l = Log (x)
      out = Gather (l, i)
    })");
  report::TraceOptions options;
  options.find = "nan";
  report::Trace trace;
  std::vector<AnyValue> results;
  Tensor x = some_floats({2});
  x.mutable_data<float>()[0] = -1;
  const Status status = report::trace(*session, feeds_of({{"x", x}, {"i", count_of(7)}}), results, options, {}, trace);
  EXPECT_EQ(status.code(), Code::kRuntime);
  ASSERT_TRUE(trace.found);
  EXPECT_FALSE(trace.found->is_complete);
  ASSERT_EQ(trace.found->places.size(), 1u);
  EXPECT_EQ(trace.found->places[0].op, "Log");
}

}  // namespace
}  // namespace treadle::testing_support
