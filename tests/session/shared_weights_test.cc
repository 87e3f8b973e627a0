// Sessions of one model share each weight, give the results of a single session, and leave nothing behind.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "session/session.h"

namespace treadle {
namespace {

constexpr int kWidth = 32;

// y = x W + d, where d has a default.
std::string model(float scale, int rows = 4) {
  std::vector<std::string> weights;
  for (int i = 0; i < kWidth * kWidth; ++i) weights.push_back(fmt::format("{:.1f}", scale * static_cast<float>(i % 7)));
  return fmt::format(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[{0},{1}] x) => (float[{0},{1}] y) <float[{1},{1}] w = {{{2}}}> {{
  p = MatMul(x, w)
  h = Tanh(w)
  q = MatMul(x, h)
  y = Add(p, q)
}})",
                     rows, kWidth, fmt::join(weights, ", "));
}

std::unique_ptr<Session> open(const std::string& text, const SessionOptions& options = {}) {
  auto session = Session::from_bytes(std::as_bytes(std::span(text)), options);
  EXPECT_TRUE(session.ok()) << session.error().to_string();
  return std::move(session).value();
}

std::vector<float> run(const Session& session, int rows = 4) {
  std::vector<float> ones(static_cast<size_t>(rows * kWidth), 1.0f);
  Tensor x = Tensor::of_float(ones).reshaped({rows, kWidth});
  const AnyValue value = x;
  const std::vector<Feed> feeds = {{"x", &value}};
  std::vector<AnyValue> results;
  const Status status = session.run(feeds, {}, results);
  EXPECT_TRUE(status.ok()) << status.to_string();
  const auto y = results[0].tensor().span<float>();
  return {y.begin(), y.end()};
}

std::set<const void*> weights_of(const Session& session) {
  std::set<const void*> found;
  ir::for_each_node(session.graph().top(), [&](const ir::Node& node) {
    for (const ir::Value* v : node.inputs) {
      if (v && v->is_constant() && v->constant.byte_size() >= 4096) found.insert(v->constant.raw());
    }
  });
  return found;
}

TEST(SharedWeights, SessionsOfOneModelShareWeightsWithAllOptions) {
  SessionOptions other;
  other.jit = Jit::kOff;
  other.threads = 1;
  const auto one = open(model(1)), two = open(model(1)), three = open(model(1), other);
  EXPECT_EQ(weights_of(*one).size(), 2);  // one of them is folded
  EXPECT_EQ(weights_of(*two), weights_of(*one));
  EXPECT_EQ(weights_of(*three), weights_of(*one));
}

TEST(SharedWeights, ResultsEqualThoseOfASessionAlone) {
  const auto alone = run(*open(model(1)));
  const auto others = run(*open(model(2)));
  const auto one = open(model(1)), two = open(model(2)), three = open(model(1));
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(run(*one), alone);
    EXPECT_EQ(run(*two), others);
    EXPECT_EQ(run(*three), alone);
  }
  EXPECT_NE(alone, others);
}

TEST(SharedWeights, ASessionOutlivesTheOneThatPacked) {
  auto one = open(model(1));
  const auto expected = run(*one);
  const auto two = open(model(1));
  EXPECT_EQ(run(*two), expected);
  one.reset();
  EXPECT_EQ(run(*two), expected);
  EXPECT_EQ(run(*open(model(1))), expected);
}

TEST(SharedWeights, OptionsThatChangeWeightsAffectNoOtherSession) {
  SessionOptions halves;
  halves.weights = Weights::kF16;
  SessionOptions plain;
  plain.optimize = false;
  const auto one = open(model(1)), two = open(model(1), halves), three = open(model(1), plain);
  const auto expected = run(*one);
  run(*two);
  EXPECT_EQ(run(*three), expected);
  EXPECT_EQ(run(*one), expected);
}

TEST(SharedWeights, AnInitialiserThatARunOverridesStaysAsItIs) {
  const std::string text = fmt::format(R"(<ir_version: 10, opset_import: ["" : 21]>
g (float[2,{0}] x, float[{0},{0}] w) => (float[2,{0}] y) <float[{0},{0}] w = {{{1}}}> {{ y = MatMul(x, w) }})",
                                       kWidth, fmt::join(std::vector<float>(kWidth * kWidth, 1.0f), ", "));
  const auto one = open(text), two = open(text);
  const AnyValue x = Tensor::of_float(std::vector<float>(2 * kWidth, 1.0f)).reshaped({2, kWidth});
  const AnyValue w = Tensor::of_float(std::vector<float>(kWidth * kWidth, 5.0f)).reshaped({kWidth, kWidth});
  const auto first = [&](const Session& session, const std::vector<Feed>& feeds) {
    std::vector<AnyValue> results;
    EXPECT_TRUE(session.run(feeds, {}, results).ok());
    return results[0].tensor().data<float>()[0];
  };
  const std::vector<Feed> plain = {{"x", &x}}, overridden = {{"x", &x}, {"w", &w}};
  EXPECT_EQ(first(*one, overridden), 5 * kWidth);
  EXPECT_EQ(first(*two, plain), kWidth);
  EXPECT_EQ(first(*one, plain), kWidth);
  EXPECT_EQ(first(*two, overridden), 5 * kWidth);
  EXPECT_EQ(first(*open(text), plain), kWidth);
}

TEST(SharedWeights, ThreadsOpenRunAndClose) {
  const auto expected = run(*open(model(1))), others = run(*open(model(2)));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] {
      for (int k = 0; k < 10; ++k) EXPECT_EQ(run(*open(model((i + k) % 2 ? 1 : 2))), (i + k) % 2 ? expected : others);
    });
  }
  for (auto& thread : threads) thread.join();
}

}  // namespace
}  // namespace treadle
