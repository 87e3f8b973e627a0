// The C++ header, on a stream.

#include <gtest/gtest.h>

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

TEST(CppApi, StreamsOutliveTheirSession) {
  const std::string bytes = accumulator();
  auto session = std::make_unique<treadle::Session>(bytes.data(), bytes.size());
  treadle::Stream stream(*session, treadle::StreamOptions().hop(1));
  session.reset();
  EXPECT_EQ(stream.push(samples({5}))[0].to_doubles(), std::vector<double>{-5});
}

}  // namespace
