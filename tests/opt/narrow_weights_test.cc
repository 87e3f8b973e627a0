// Which products keep their weights in float16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/gemm.h"
#include "opt/passes.h"
#include "session/optimize.h"
#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

ir::Value* weights(TestGraph& t, int64_t rows, int64_t columns, float first = 0.1f) {
  Tensor w = *Tensor::allocate(ElementType::kFloat, {rows, columns});
  std::fill_n(w.mutable_data<float>(), w.element_count(), 0.25f);
  *w.mutable_data<float>() = first;
  return t->constant(std::move(w));
}

ir::Value* lstm_weights(TestGraph& t) {
  Tensor w = *Tensor::allocate(ElementType::kFloat, {1, 64, 16});
  std::fill_n(w.mutable_data<float>(), w.element_count(), 0.25f);
  return t->constant(std::move(w));
}

// Names of the products with float16 weights, in order.
std::vector<std::string> half_products(const ir::Graph& graph) {
  std::vector<std::string> found;
  ir::for_each_node(graph.top(), [&](const ir::Node& node) {
    if (node.attributes.has(kHalfWeights)) found.push_back(node.outputs[0]->name);
  });
  return found;
}

std::vector<std::string> narrowed(TestGraph& t, opt::Remarks* remarks = nullptr) {
  opt::narrow_weights(t.graph(), remarks);
  return half_products(t.graph());
}

TEST(NarrowWeights, ProductsWithConstantsInLoops) {
  TestGraph t({floats({1, 16}), floats({7, 1, 16}), floats({16, 16})}, 1);
  auto* before = t->call("MatMul", {t.in(0), weights(t, 16, 16)});
  const auto body = t.begin_scan({before}, {t.in(1)});
  auto* by_constant = t->call("MatMul", {body[0], weights(t, 16, 16)});
  auto* by_input = t->call("MatMul", {by_constant, t.in(2)});
  auto* gemm = t->call("Gemm", {by_input, weights(t, 16, 16)});
  t->set_output(0, t.end_scan({t->call("Add", {gemm, body[1]})})[0]);
  opt::Remarks remarks;
  EXPECT_THAT(narrowed(t, &remarks), testing::ElementsAre(by_constant->name, gemm->name));
  ASSERT_EQ(remarks.entries().size(), 2u);
  EXPECT_EQ(remarks.entries()[0].change, opt::Change::kNarrowed);
  EXPECT_EQ(remarks.entries()[0].into, "off by at most 2.4e-05, weights up to 0.25");
}

// The remark belongs to the loop that reads the product, which need not be the next one.
TEST(NarrowWeights, RemarksNameTheLoopThatReadsTheProduct) {
  TestGraph t({floats({1, 16}), floats({7, 16}), floats({7, 1, 16})}, 2);
  auto* rows = t->call("MatMul", {t.in(1), weights(t, 16, 16)});
  rows->producer->attributes.set(ir::Attribute::of(kOfRecurrence, int64_t{1}));
  auto body = t.begin_scan({t.in(0)}, {t.in(2)});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], body[1]})})[0]);
  auto* steps = t->call("Unsqueeze", {rows, t->constant_int64s({1})});
  steps->type = t.types()[2];
  body = t.begin_scan({t.in(0)}, {steps});
  const std::string name = t.loop()->name;
  t->set_output(1, t.end_scan({t->call("Sub", {body[0], body[1]})})[0]);
  opt::Remarks remarks;
  EXPECT_THAT(narrowed(t, &remarks), testing::ElementsAre(rows->name));
  ASSERT_EQ(remarks.entries().size(), 1u);
  EXPECT_EQ(remarks.entries()[0].loop, name);
}

// Products of recurrent operators keep their weights in float32 where narrow-weights is switched off.
TEST(NarrowWeights, ProductsOfRecurrentOperatorsUnlessAPassIsOff) {
  TestGraph t({floats({7, 1, 16})}, 1);
  t->set_output(0,
                t->call("LSTM", {t.in(0), lstm_weights(t), lstm_weights(t)}, {ir::Attribute::of("hidden_size", 16)}));
  Inference inference({.fold = false});
  ASSERT_TRUE(inference.infer(t.graph().top()).ok());
  const auto count = [&](std::string_view off) {
    const auto made = session::optimize(t.graph(), {{{floats({7, 1, 16}), {}}}},
                                        {.half_weights = true, .off = opt::PassSet::named(off).value()});
    EXPECT_TRUE(made.ok());
    return half_products(*made->graph).size();
  };
  EXPECT_EQ(count(""), 2U);
  EXPECT_EQ(count("narrow-weights"), 0U);
  EXPECT_EQ(count("mark-recurrent"), 1U) << "the product in the loop";
}

TEST(NarrowWeights, NotWhatFloat16DoesNotHoldNorDots) {
  TestGraph t({floats({1, 16}), floats({7, 1, 16})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  auto* large = t->call("MatMul", {body[0], weights(t, 16, 16, 7e4f)});
  auto* infinite = t->call("MatMul", {large, weights(t, 16, 16, INFINITY)});
  auto* none = t->call("MatMul", {infinite, weights(t, 16, 16, NAN)});
  auto* dots = t->call("MatMul", {none, weights(t, 16, 2)});
  auto* back = t->call("MatMul", {dots, weights(t, 2, 16)});
  t->set_output(0, t.end_scan({t->call("Add", {back, body[1]})})[0]);
  EXPECT_THAT(narrowed(t), testing::ElementsAre(back->name));
}

}  // namespace
}  // namespace treadle::testing_support
