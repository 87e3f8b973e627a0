// The C++ header, on a stream.

#include <gtest/gtest.h>

#include <stdexcept>

#include "support/model_bytes.h"
#include "support/temp_dir.h"
#include "treadle/treadle.hpp"

namespace {

using namespace treadle::onnx_bytes;  // NOLINT(google-build-using-namespace): builders of small models

// level = stateN = state + the sum of x over its axis
std::string accumulator() {
  return model_bytes(graph({.nodes = {node("ReduceSum", {"x"}, {"total"}, {int_attribute("keepdims", 0)}),
                                      node("Add", {"state", "total"}, {"stateN"}), node("Neg", {"stateN"}, {"level"})},
                            .inputs = {value("x", 1, {"T"}), value("state", 1, {})},
                            .outputs = {value("level", 1, {}), value("stateN", 1, {})}}));
}

treadle::Feeds samples(const std::vector<float>& numbers) {
  return {{"x", treadle::Value::of(numbers.data(), {static_cast<int64_t>(numbers.size())})}};
}

TEST(CppApi, RunsAndThrows) {
  const std::string bytes = accumulator();
  const treadle::Session session(bytes.data(), bytes.size());
  treadle::Feeds feeds = samples({1, 2, 3});
  float zero = 0;
  feeds.emplace_back("state", treadle::Value::borrow(&zero, {}));
  const auto results = session.run(feeds, {"stateN"});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].to_doubles(), std::vector<double>{6});
  EXPECT_EQ(session.type(TREADLE_INPUT, 0).text(), "tensor(float)[T]");
  treadle::RunOptions options;
  EXPECT_EQ(session.run(feeds, &options)[1].to_doubles(), std::vector<double>{6});
  EXPECT_EQ(session.run(feeds, {})[1].to_doubles(), std::vector<double>{6});
  try {
    session.run(samples({1}));
    FAIL() << "an input is missing";
  } catch (const treadle::Error& e) {
    EXPECT_EQ(e.code(), TREADLE_INVALID_ARGUMENT);
    EXPECT_NE(std::string(e.what()).find("state"), std::string::npos);
  }
}

TEST(CppApi, WritesIntoResults) {
  const std::string bytes = accumulator();
  const treadle::Session session(bytes.data(), bytes.size());
  float zero = 0, level = 7;
  treadle::Feeds feeds = samples({1, 2, 3});
  feeds.emplace_back("state", treadle::Value::borrow(&zero, {}));
  std::vector<treadle::Value> results;
  results.push_back(treadle::Value::borrow(&level, {}));
  session.run_into(feeds, {"level"}, results);
  EXPECT_EQ(level, -6);
}

TEST(CppApi, TellsHowFarARunIs) {
  const std::string bytes = accumulator();
  const treadle::Session session(bytes.data(), bytes.size());
  treadle::Stream stream(session, treadle::StreamOptions().time("x", 0).hop(2).state("state", "stateN"));
  treadle::RunOptions options;
  std::vector<int64_t> told;
  options.progress([&](const treadle_progress& progress) {
    told = {progress.done, progress.total};
    return false;
  });
  stream.push(samples({1, 2, 3, 4, 5, 6}), &options);
  EXPECT_EQ(told, (std::vector<int64_t>{3, 3})) << "runs of the push";

  options.progress([](const treadle_progress&) -> bool { throw std::out_of_range("enough"); });
  EXPECT_THROW(stream.push(samples({1, 2}), &options), std::out_of_range);
  options.progress([](const treadle_progress&) { return true; });
  try {
    stream.push(samples({1, 2}), &options);
    FAIL() << "the caller wants no more";
  } catch (const treadle::Error& e) {
    EXPECT_EQ(e.code(), TREADLE_CANCELLED);
  }
  options.progress(nullptr);
  EXPECT_EQ(stream.push(samples({1, 2}), &options)[0].to_doubles(), std::vector<double>{-24});
}

TEST(CppApi, SaysWhichOptionsHaveNoEffect) {
  const std::string bytes = accumulator();
  treadle::SessionOptions options;
  options.dimension("T", 4).dimension("time", 4).denoted_dimension("DATA_BATCH", 1);
  const treadle::Session session(bytes.data(), bytes.size(), options);
  EXPECT_EQ(session.type(TREADLE_INPUT, 0).text(), "tensor(float)[4]");
  const std::vector<std::string> remarks = session.remarks();
  ASSERT_EQ(remarks.size(), 2u);
  EXPECT_NE(remarks[0].find("'DATA_BATCH'"), std::string::npos) << remarks[0];
  EXPECT_NE(remarks[1].find("'time'"), std::string::npos) << remarks[1];
}

TEST(CppApi, ObeysTheConditionsOfLoopsOnRequest) {
  const std::string text =
      "<ir_version: 8, opset_import: [\"\" : 17]>\n"
      "g (int64 m, int64 e) => (int64[n] s) { s = Loop (m, \"\") <body = b (int64 i, bool c0) => (bool c1, int64 j) { "
      "c1 = Less(i, e) j = Identity(i) }> }";
  const int64_t m = 5, e = 2;
  const auto rows = [&](const treadle::Session& session) {
    treadle::Feeds feeds;
    feeds.emplace_back("m", treadle::Value::of(&m, {}));
    feeds.emplace_back("e", treadle::Value::of(&e, {}));
    return session.run(feeds)[0].to_doubles().size();
  };
  const treadle::Session ignoring(text.data(), text.size());
  ASSERT_EQ(ignoring.warnings().size(), 1u);
  EXPECT_NE(ignoring.warnings()[0].find("loop_condition"), std::string::npos);
  EXPECT_EQ(rows(ignoring), 5u);
  treadle::SessionOptions options;
  options.obey_loop_conditions();
  const treadle::Session obeying(text.data(), text.size(), options);
  EXPECT_TRUE(obeying.warnings().empty());
  EXPECT_EQ(rows(obeying), 3u);
}

TEST(CppApi, GivesTheOptimisedModel) {
  const std::string bytes = accumulator();
  const treadle::Session session(bytes.data(), bytes.size());
  const std::string optimized = session.optimized_model();
  const treadle::Session again(optimized.data(), optimized.size());
  EXPECT_EQ(again.dump_graph(), session.dump_graph());
}

TEST(CppApi, ReadsFilesAsModelsAreRead) {
  treadle::TempDir dir;
  EXPECT_EQ(treadle::read_file(dir.write("a.bin", "bytes")), "bytes");
  for (const std::string& path : {std::string("/dev/zero"), dir.path().string(), dir.path().string() + "/none"}) {
    EXPECT_THROW(treadle::read_file(path), treadle::Error) << path;
  }
}

TEST(CppApi, MakesSequences) {
  const int64_t numbers[] = {1, 2};
  const treadle::Value element = treadle::Value::of(numbers, {2});
  const treadle::Value sequence = treadle::Value::sequence({element, element});
  EXPECT_EQ(sequence.sequence_size(), 2u);
  EXPECT_EQ(sequence.sequence_at(1).to_doubles(), (std::vector<double>{1, 2}));
}

TEST(CppApi, StreamsAlongAnAxisByItsName) {
  const std::string bytes = model_bytes(graph(
      {.nodes = {node("Neg", {"x"}, {"y"})}, .inputs = {value("x", 1, {"T"})}, .outputs = {value("y", 1, {"T"})}}));
  const treadle::Session session(bytes.data(), bytes.size());
  treadle::Stream stream(session, treadle::StreamOptions().time("x", "T"));
  EXPECT_EQ(stream.push(samples({1, 2}))[0].to_doubles(), (std::vector<double>{-1, -2}));
  EXPECT_THROW(treadle::Stream(session, treadle::StreamOptions().time("x", "time")), treadle::Error);
}

TEST(CppApi, SeedsRandomOperators) {
  const std::string bytes = model_bytes(graph({.nodes = {node("RandomUniformLike", {"x"}, {"y"})},
                                               .inputs = {value("x", 1, {"T"})},
                                               .outputs = {value("y", 1, {"T"})}}));
  const treadle::Session session(bytes.data(), bytes.size());
  std::vector<std::vector<double>> drawn;
  for (const uint64_t seed : {5, 5, 6}) {
    treadle_set_seed(seed);
    drawn.push_back(session.run(samples({1, 2, 3}))[0].to_doubles());
  }
  EXPECT_EQ(drawn[0], drawn[1]);
  EXPECT_NE(drawn[0], drawn[2]);
}

TEST(CppApi, Streams) {
  const std::string bytes = accumulator();
  const treadle::Session session(bytes.data(), bytes.size());
  treadle::Stream stream(session, treadle::StreamOptions().hop(2));
  EXPECT_NE(stream.text().find("state <- stateN"), std::string::npos);
  EXPECT_EQ(stream.push(samples({1, 2, 3}))[0].to_doubles(), std::vector<double>{-3});
  EXPECT_EQ(stream.pending(), 1);
  const std::string snapshot = stream.save();
  treadle::Stream fork = stream;
  EXPECT_EQ(stream.push(samples({4, 5, 6}))[0].to_doubles(), (std::vector<double>{-10, -21}));
  EXPECT_EQ(fork.flush()[0].to_doubles(), std::vector<double>{-6});
  stream.load(snapshot);
  stream.load_from_other_weights(snapshot);
  EXPECT_EQ(stream.push(samples({4}))[0].to_doubles(), std::vector<double>{-10});
  stream.reset();
  EXPECT_EQ(stream.push(samples({1, 1}))[0].to_doubles(), std::vector<double>{-2});
}

TEST(CppApi, StreamsWriteIntoResults) {
  const std::string bytes = accumulator();
  const treadle::Session session(bytes.data(), bytes.size());
  treadle::Stream stream(session, treadle::StreamOptions().hop(2));
  stream.warm();
  std::vector<treadle::Value> results;
  stream.push_into(samples({1, 2}), results);
  ASSERT_EQ(results.size(), 1u);
  const void* data = treadle_tensor_data(results[0].get());
  stream.push_into(samples({3, 4}), results);
  EXPECT_EQ(results[0].to_doubles(), std::vector<double>{-10});
  EXPECT_EQ(treadle_tensor_data(results[0].get()), data);
  stream.push_into(samples({5, 6, 7, 8}), results);  // two runs: another size
  EXPECT_EQ(results[0].to_doubles(), (std::vector<double>{-21, -36}));
  EXPECT_EQ(stream.delay(), 0);
  EXPECT_FALSE(stream.done());
}

TEST(CppApi, TellsAndSetsStates) {
  const std::string bytes = accumulator();
  const treadle::Session session(bytes.data(), bytes.size());
  treadle::Stream stream(session, treadle::StreamOptions().hop(2));
  EXPECT_EQ(stream.output_names(), std::vector<std::string>{"level"});
  EXPECT_EQ(stream.output_axis(0), 0);
  EXPECT_EQ(stream.output_axis(1), -1);
  ASSERT_EQ(stream.state_names(), std::vector<std::string>{"state"});
  size_t hops = 0;
  stream.push(samples({1, 2, 3, 4, 5}), nullptr, &hops);
  EXPECT_EQ(hops, 2u);
  EXPECT_EQ(stream.state(0).to_doubles(), std::vector<double>{10});
  const float ten = 100;
  stream.set_state("state", treadle::Value::of(&ten, {}));
  EXPECT_EQ(stream.push(samples({6}))[0].to_doubles(), std::vector<double>{-111});
}

// y = x + x, for any batch and any length
std::string doubling() {
  return model_bytes(graph({.nodes = {node("Add", {"x", "x"}, {"y"})},
                            .inputs = {value("x", 1, {"N", "T"})},
                            .outputs = {value("y", 1, {"N", "T"})}}));
}

TEST(CppApi, PoolsRunStreamsTogether) {
  const std::string bytes = doubling();
  const treadle::Session session(bytes.data(), bytes.size());
  treadle::Pool pool(session, treadle::StreamOptions().time("x", 1), 4);
  const auto chunk = [](float number) { return std::vector{treadle::Value::of(&number, {1, 1})}; };
  const auto results = pool.push({"x"}, {{7, chunk(1)}, {8, chunk(2)}});
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1][0].to_doubles(), std::vector<double>{4});
  EXPECT_EQ(pool.output_names(), std::vector<std::string>{"y"});
  EXPECT_EQ(pool.size(), 2u);
  EXPECT_EQ(pool.why_single(), "");
  treadle::Stream alone = pool.fork(8);
  EXPECT_EQ(alone.push({{"x", chunk(3)[0]}})[0].to_doubles(), std::vector<double>{6});
  const float together[] = {5, 6};
  const auto batch = pool.push_batch({8, 7}, {{"x", treadle::Value::of(together, {2, 1})}});
  EXPECT_EQ(batch[0].to_doubles(), (std::vector<double>{10, 12}));
  std::vector<int64_t> lengths;
  EXPECT_EQ(pool.push_batch({7, 8}, {{"x", treadle::Value::of(together, {2, 1})}}, nullptr, &lengths).size(), 1u);
  EXPECT_EQ(lengths, (std::vector<int64_t>{1, 1}));
  EXPECT_THROW(pool.push_batch({8, 8}, {{"x", treadle::Value::of(together, {2, 1})}}), treadle::Error);
  pool.leave(8);
  EXPECT_FALSE(pool.contains(8));
  pool.join(9, alone);
  EXPECT_TRUE(pool.contains(9));
  EXPECT_FALSE(pool.done(9));
  pool.flush(7);
  EXPECT_EQ(pool.size(), 1u);
  EXPECT_THROW(pool.flush(7), treadle::Error);
}

TEST(CppApi, ReducesModels) {
  const treadle::ModelFile model = treadle::ModelFile::bytes(doubling());
  size_t calls = 0;
  treadle_reduction last = {};
  const std::string small = treadle::reduce_model(model, [&](std::string_view bytes, const treadle_reduction& so_far) {
    EXPECT_EQ(so_far.attempts, ++calls);
    EXPECT_EQ(so_far.step[0] == 0, calls == 1);
    last = so_far;
    return bytes.find("Add") != std::string_view::npos ? TREADLE_FAILS : TREADLE_PASSES;
  });
  EXPECT_EQ(last.nodes, 1u);
  EXPECT_NE(small.find("Add"), std::string::npos);
  EXPECT_LE(small.size(), doubling().size());
  const auto passes = [](std::string_view, const treadle_reduction&) { return TREADLE_PASSES; };
  EXPECT_EQ(treadle::reduce_model(model, passes), doubling()) << "it passes as it is";
  const auto stops = [](std::string_view, const treadle_reduction&) { return TREADLE_STOP; };
  EXPECT_EQ(treadle::reduce_model(model, stops), doubling());
  EXPECT_THROW(treadle::reduce_model(treadle::ModelFile::bytes("no model"), passes), treadle::Error);
}

TEST(CppApi, ChecksInfersAndShowsModels) {
  const treadle::ModelFile model = treadle::ModelFile::bytes(doubling());
  const treadle::Report report = treadle::check_model(model, TREADLE_CHECK_FULL | TREADLE_CHECK_RUNS);
  EXPECT_EQ(report.error_count(), 0u) << report.text();
  EXPECT_EQ(report.refusal(), "");
  EXPECT_NE(treadle::model_tree(model).find("Add"), std::string::npos);
  const std::string typed = treadle::infer_model(model);
  EXPECT_EQ(treadle::Session(typed.data(), typed.size()).type(TREADLE_OUTPUT, 0).text(), "tensor(float)[N,T]");
  const std::string wrong = model_bytes(graph(
      {.nodes = {node("Add", {"x", "z"}, {"y"})}, .inputs = {value("x", 1, {})}, .outputs = {value("y", 1, {})}}));
  const auto problems = treadle::check_model(treadle::ModelFile::bytes(wrong)).problems();
  ASSERT_FALSE(problems.empty());
  EXPECT_TRUE(problems[0].is_error);
  EXPECT_EQ(problems[0].code, "name-unknown");
  EXPECT_THROW(treadle::check_model("/nowhere/model.onnx"), treadle::Error);
}

TEST(CppApi, WritesAndReadsTexts) {
  const std::string bytes = doubling();
  const std::string text = treadle::print_text(TREADLE_MODEL, bytes);
  EXPECT_TRUE(treadle::is_text(text));
  EXPECT_FALSE(treadle::is_text(bytes));
  EXPECT_EQ(treadle::print_text(TREADLE_MODEL, treadle::parse_text(TREADLE_MODEL, text)), text);
}

TEST(CppApi, ListsOperators) {
  size_t loops = 0;
  for (const treadle::Operator& op : treadle::operators()) {
    if (op.name() != "Loop") continue;
    ++loops;
    EXPECT_EQ(op.domain(), "");
    EXPECT_EQ(op.versions().front(), 1);
    EXPECT_NE(op.json().find("v_initial"), std::string::npos);
  }
  EXPECT_EQ(loops, 1u);
  EXPECT_EQ(treadle::operator_like("Loopp"), "Loop");
}

// A program that was compiled with another version of the header.
TEST(CppApi, CountersMayGrow) {
  const std::string bytes = doubling();
  const treadle::Session session(bytes.data(), bytes.size());
  session.run({{"x", treadle::Value::tensor(1, {1, 1})}});
  EXPECT_EQ(session.counters().runs, 1);
  struct {
    treadle_counters known;
    int64_t later;
  } larger{{}, 7};
  treadle_session_read_counters(session.get(), &larger.known, sizeof larger);
  EXPECT_EQ(larger.known.runs, 1);
  EXPECT_EQ(larger.later, 0);
  treadle_counters smaller{0, 7, 7, 7, 7, 7};
  treadle_session_read_counters(session.get(), &smaller, sizeof smaller.plans);
  EXPECT_EQ(smaller.plans, 1);
  EXPECT_EQ(smaller.runs, 7);
}

TEST(CppApi, MakesOptionalsAndMaps) {
  const int64_t keys[] = {3, 5};
  const float numbers[] = {1, 2};
  const treadle::Value values = treadle::Value::of(numbers, {2});
  const treadle::Value map = treadle::Value::map(treadle::Value::of(keys, {2}), values);
  EXPECT_EQ(map.map_keys().to_doubles(), (std::vector<double>{3, 5}));
  const treadle::Value some = treadle::Value::optional(values);
  EXPECT_TRUE(some.has_value());
  EXPECT_EQ(some.optional_value().to_doubles(), (std::vector<double>{1, 2}));
  EXPECT_FALSE(values.is_exclusive());
  EXPECT_TRUE(values.clone().is_exclusive());
  const auto [table_keys, table_values] = treadle::Value::sequence({map, map}).sequence_table();
  EXPECT_EQ(table_keys.dims(), std::vector<int64_t>{2});
  EXPECT_EQ(table_values.dims(), (std::vector<int64_t>{2, 2}));
  EXPECT_EQ(treadle::Value::from_pb(values.to_pb()).to_doubles(), (std::vector<double>{1, 2}));
}

TEST(CppApi, StreamsOutliveTheirSession) {
  const std::string bytes = accumulator();
  auto session = std::make_unique<treadle::Session>(bytes.data(), bytes.size());
  treadle::Stream stream(*session, treadle::StreamOptions().hop(1));
  session.reset();
  EXPECT_EQ(stream.push(samples({5}))[0].to_doubles(), std::vector<double>{-5});
}

// y = alpha x, and how many elements there are.
struct Scale {
  explicit Scale(const treadle::Node& node) : alpha(node.number("alpha", 2)), lists(node.integers("counts").size()) {
    if (node.text("mode", "linear") != "linear") throw std::invalid_argument("mode is linear");
  }
  void compute(treadle::Call& call) const {
    const auto x = call.input<float>(0);
    auto y = call.output<float>(0, x.dims);
    for (size_t i = 0; i < x.count; ++i) y[i] = alpha * x[i];
    call.output<int64_t>(1, {})[0] = static_cast<int64_t>(x.count + lists);
    if (x.count > 3) throw std::runtime_error("too many elements");
  }
  void infer(treadle::Inference& inference) const { inference.set_like(0, 0); }
  float alpha;
  size_t lists;
};

std::string scaled(std::vector<treadle::ProtoBytes> attributes) {
  return model_bytes(graph({.nodes = {node("Scale", {"x"}, {"y", "count"}, std::move(attributes), "s", "mine")},
                            .inputs = {value("x", 1, {"T"})},
                            .outputs = {value("y", 1, {"T"}), value("count", 7, {})}}),
                     {}, {opset("", 17), opset("mine", 1)});
}

TEST(CppApi, OperatorsOfAProgramsOwn) {
  treadle::SessionOptions options;
  treadle::CustomOperator("mine", "Scale")
      .input("tensor(float)")
      .output("tensor(float)")
      .output("tensor(int64)")
      .kernel<Scale>()
      .add_to(options);
  const std::string bytes = scaled({int_attribute("other", 1)});
  EXPECT_THROW(treadle::Session(bytes.data(), bytes.size()), treadle::Error)
      << "the operator is of these options alone";
  const treadle::Session session(bytes.data(), bytes.size(), options);
  EXPECT_EQ(session.type(TREADLE_OUTPUT, 0).text(), "tensor(float)[T]");
  const auto results = session.run(samples({1, -3}));
  EXPECT_EQ(results[0].to_doubles(), (std::vector<double>{2, -6}));
  EXPECT_EQ(results[1].to_doubles(), std::vector<double>{2});
  try {
    session.run(samples({1, 2, 3, 4}));
    FAIL() << "the kernel throws";
  } catch (const treadle::Error& e) {
    EXPECT_EQ(e.code(), TREADLE_RUNTIME);
    EXPECT_EQ(e.message(), "too many elements");
    EXPECT_EQ(e.place(), "/s (Scale-1)");
  }
}

// Cancels the run that calls it for the third time.
struct Stops {
  explicit Stops(const treadle::Node&) {}
  void compute(treadle::Call& call) const {
    const auto x = call.input<float>(0);
    auto y = call.output<float>(0, x.dims);
    for (size_t i = 0; i < x.count; ++i) y[i] = x[i];
    if (++calls == 3) options->cancel();
  }
  static inline int calls = 0;
  static inline treadle::RunOptions* options = nullptr;
};

TEST(CppApi, LimitsAroundOperatorsOfAProgramsOwn) {
  std::vector<treadle::ProtoBytes> nodes;
  for (int i = 0; i < 9; ++i) {
    nodes.push_back(node("Stops", {i == 0 ? "x" : "y" + std::to_string(i)}, {"y" + std::to_string(i + 1)}, {},
                         "s" + std::to_string(i), "mine"));
  }
  const std::string bytes =
      model_bytes(graph({.nodes = nodes, .inputs = {value("x", 1, {"T"})}, .outputs = {value("y9", 1, {"T"})}}), {},
                  {opset("", 17), opset("mine", 1)});
  for (const char* tier : {"program", "reference"}) {
    treadle::SessionOptions options;
    options.set("tier", tier);
    treadle::CustomOperator("mine", "Stops")
        .input("tensor(float)")
        .output("tensor(float)")
        .kernel<Stops>()
        .add_to(options);
    const treadle::Session session(bytes.data(), bytes.size(), options);
    treadle::RunOptions run;
    Stops::options = &run;
    Stops::calls = 0;
    EXPECT_THROW(session.run(samples({1, 2}), &run), treadle::Error);
    EXPECT_EQ(Stops::calls, 3) << tier;
  }
}

}  // namespace
