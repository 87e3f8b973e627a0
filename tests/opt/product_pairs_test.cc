// Products that are added to each other, as the step of a recurrence has them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using testing::Contains;
using testing::Not;

constexpr int64_t kHidden = 12, kFeatures = 7;

Tensor weights(ElementType type, Dims dims, int seed) {
  std::mt19937 engine(static_cast<unsigned>(seed));
  Type tensor = Type::tensor(type, {});
  for (const int64_t dim : dims) tensor.shape.push_back(Dim(dim));
  return random_value(tensor, engine).tensor();
}

// An LSTM of `steps` steps over `batch` entries.
std::unique_ptr<TestGraph> lstm(int64_t steps, int64_t batch, ElementType type = ElementType::kFloat) {
  auto made = std::make_unique<TestGraph>(
      std::vector<Type>{Type::tensor(type, {steps, batch, kFeatures}), Type::tensor(type, {1, batch, kHidden}),
                        Type::tensor(type, {1, batch, kHidden})},
      3);
  TestGraph& t = *made;
  ir::Value* w = t->constant(weights(type, {1, 4 * kHidden, kFeatures}, 1));
  ir::Value* r = t->constant(weights(type, {1, 4 * kHidden, kHidden}, 2));
  ir::Value* b = t->constant(weights(type, {1, 8 * kHidden}, 3));
  ir::Node* node = t->node("LSTM", std::vector<ir::Value*>{t.in(0), w, r, b, nullptr, t.in(1), t.in(2)}, 3,
                           {ir::Attribute::of("hidden_size", kHidden)});
  for (size_t i = 0; i < 3; ++i) t->set_output(i, node->outputs[i]);
  return made;
}

// gate = x W (+ b) + h R, as a graph of its own.
std::unique_ptr<TestGraph> products(int64_t rows, bool with_bias, float alpha = 1, bool used_twice = false) {
  auto made = std::make_unique<TestGraph>(std::vector<Type>{floats({rows, kFeatures}), floats({rows, kHidden})},
                                          used_twice ? 2 : 1);
  TestGraph& t = *made;
  ir::Value* w = t->constant(weights(ElementType::kFloat, {kFeatures, 20}, 1));
  ir::Value* r = t->constant(weights(ElementType::kFloat, {kHidden, 20}, 2));
  std::vector<ir::Value*> inputs{t.in(0), w};
  if (with_bias) inputs.push_back(t->constant(weights(ElementType::kFloat, {20}, 3)));
  ir::Value* first = t->call("Gemm", inputs);
  t->set_output(0, t->call("Gemm", {t.in(1), r, first}, {ir::Attribute::of("alpha", alpha)}));
  if (used_twice) t->set_output(1, first);
  return made;
}

TEST(ProductPairs, AStepOfARecurrenceIsOneProduct) {
  for (const ElementType type : {ElementType::kFloat, ElementType::kDouble}) {
    for (const int64_t batch : {1, 3}) {
      const auto t = lstm(1, batch, type);
      const auto planned = plan_of(*t);
      EXPECT_THAT(planned->listing(), Contains("GemmPair"));
      EXPECT_THAT(planned->listing(), Not(Contains("Gemm")));
      expect_same_as_judge(*t, *planned);
    }
  }
}

TEST(ProductPairs, LoopsAndHalfPrecisionStayAsTheyAre) {
  const auto several = lstm(5, 1), half = lstm(1, 1, ElementType::kFloat16);
  EXPECT_THAT(plan_of(*several)->listing(), Not(Contains("GemmPair")));
  EXPECT_THAT(plan_of(*half)->listing(), Not(Contains("GemmPair")));
}

TEST(ProductPairs, WhatIsPaired) {
  for (const bool with_bias : {false, true}) {
    const auto t = products(2, with_bias);
    const auto planned = plan_of(*t);
    EXPECT_THAT(planned->listing(), testing::ElementsAre("GemmPair"));
    expect_same_as_judge(*t, *planned);
  }
  const std::unique_ptr<TestGraph> others[] = {products(2, true, 0.5f), products(2, true, 1, true), products(64, true)};
  for (const auto& t : others) {
    EXPECT_THAT(plan_of(*t)->listing(), testing::ElementsAre("Gemm", "Gemm"));
  }
}

// Whichever product comes first.
TEST(ProductPairs, EveryRunGivesTheSameBits) {
  for (const Isa isa : {Isa::kBaseline, kernels::preferred_isa()}) {
    const kernels::ScopedIsa scope(isa);
    const auto t = lstm(1, 1);
    const auto paired = plan_of(*t, true, isa), plain = plan_of(*t, false, isa);
    std::mt19937 engine(7);
    std::vector<AnyValue> inputs;
    for (const Type& type : t->types()) inputs.push_back(random_value(type, engine));
    auto run = [&](run::Context& context) {
      std::vector<AnyValue> results(3);
      EXPECT_TRUE(context.run(places_of(std::as_const(inputs)), places_of(results), {}).ok());
      return results;
    };
    run::Context with_pairs(paired->program), without(plain->program);
    const std::vector<AnyValue> expected = run(without);
    for (int turn = 0; turn < 4; ++turn) {
      const std::vector<AnyValue> found = run(with_pairs);
      for (size_t i = 0; i < 3; ++i) {
        const Tensor& a = expected[i].tensor();
        EXPECT_EQ(std::memcmp(a.raw(), found[i].tensor().raw(), a.byte_size()), 0) << "turn " << turn;
      }
    }
  }
}

}  // namespace
}  // namespace treadle::testing_support
