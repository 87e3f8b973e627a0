// Products that leave a Scan: which run before it, which stay, and that results do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

TEST(Batching, ProductWithItsBiasLeavesTheBody) {
  for (const bool reverse : {false, true}) {
    TestGraph t({floats({1, 16}), floats({7, 1, 8}), floats({8, 16}), floats({16, 16}), floats({16})}, 2);
    const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1, reverse);
    auto* x = t->call("Add", {t->call("MatMul", {body[1], t.in(2)}), t.in(4)});
    auto* h = t->call("MatMul", {body[0], t.in(3)});
    auto* next = t->call("Tanh", {t->call("Add", {x, h})});
    const auto after = t.end_scan({next, next});
    t->set_output(0, after[0]);
    t->set_output(1, after[1]);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "Add", "Scan", "MatMul", "fused Add Tanh", "end"));
    expect_same_as_reference(t, *planned);
  }
}

TEST(Batching, GemmOfSeveralRows) {
  TestGraph t({floats({3, 16}), floats({7, 3, 8}), floats({16, 8}), floats({1, 16})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  auto* gemm = t->call("Gemm", {body[1], t.in(2), t.in(3)},
                       {Attribute::of("transB", 1), Attribute::of("alpha", 0.5f), Attribute::of("beta", 2.0f)});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], gemm})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Gemm", "Scan", "Add", "end"));
  expect_same_as_reference(t, *planned);
}

// The number of products that a Scan keeps when it is to be native code: [rows, depth] by [depth, width] of each
// iteration's input.
size_t products_inside(int64_t rows, int64_t depth, int64_t width, bool native) {
  TestGraph t({floats({rows, width}), floats({7, rows, depth}), floats({depth, width})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], t->call("MatMul", {body[1], t.in(2)})})})[0]);
  std::vector<plan::InputSpec> knowledge;
  for (const Type& type : t.types()) knowledge.push_back({type, {}});
  const auto specialized = session::optimize(t.graph(), knowledge, {.native = native});
  EXPECT_TRUE(specialized.ok());
  size_t count = 0;
  ir::for_each_node(std::as_const(*specialized->graph).top(), [&](const ir::Node& node) {
    count += node.op->name == "MatMul" && node.parent->parent_node != nullptr;
  });
  return count;
}

TEST(Batching, NativeLoopsKeepProductsOfARowWithFewWeights) {
  EXPECT_EQ(products_inside(1, 12, 8, true), 1);
  EXPECT_EQ(products_inside(1, 32, 32, true), 1);
  EXPECT_EQ(products_inside(1, 12, 8, false), 0);
  EXPECT_EQ(products_inside(2, 12, 8, true), 0);
  EXPECT_EQ(products_inside(1, 64, 32, true), 0);
}

// Operands of different ranks are aligned behind the axis of iterations; shapes of an iteration decide the stacked
// shapes.
TEST(Batching, WhatLeadsToAProductLeavesToo) {
  TestGraph t({floats({2, 16}), floats({5, 8}), floats({5, 2, 8}), floats({8, 16}), floats({8})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2)});
  auto* scaled = t->call("Mul", {body[1], t.in(4)});
  auto* both = t->call("Add", {scaled, body[2]});
  auto* flat = t->call("Reshape", {both, t->constant_int64s({1, 2, 8})});
  auto* product = t->call("MatMul", {flat, t.in(3)});
  auto* back = t->call("Squeeze", {product, t->constant_int64s({0})});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], back})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Mul", "Add", "MatMul", "Scan", "Add", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(Batching, WhatIsNoProductStays) {
  TestGraph t({floats({16}), floats({7, 16}), floats({16})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  auto* scaled = t->call("Mul", {body[1], t.in(2)});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], scaled})})[0]);
  EXPECT_THAT(plan_of(t)->listing(), ElementsAre("Scan", "fused Mul Add", "end"));
}

TEST(Batching, ProductsOfStatesAndOfVaryingWeightsStay) {
  TestGraph t({floats({1, 8}), floats({7, 1, 8}), floats({7, 8, 8}), floats({8, 8})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2)});
  auto* varying = t->call("MatMul", {body[1], body[2]});
  auto* state = t->call("MatMul", {t->call("Add", {body[0], varying}), t.in(3)});
  t->set_output(0, t.end_scan({state})[0]);
  EXPECT_THAT(plan_of(t)->listing(), ElementsAre("Scan", "MatMul", "Add", "MatMul", "end"));
}

TEST(Batching, OtherReadersOfAScanInputKeepIt) {
  TestGraph t({floats({1, 8}), floats({7, 1, 8}), floats({8, 8})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  auto* product = t->call("MatMul", {body[1], t.in(2)});
  auto* next = t->call("Mul", {t->call("Add", {body[0], product}), body[1]});
  const auto after = t.end_scan({next, product});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "Scan", "fused Add Mul", "end"));
  expect_same_as_reference(t, *planned);
}

// The trip count is a symbol: the product runs through its inline cache, and the body is still planned.
TEST(Batching, StepsThatAreNotKnown) {
  TestGraph t({floats({1, 16}), floats({Dim::symbol("T"), 1, 8}), floats({8, 16})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  auto* next = t->call("Tanh", {t->call("Add", {t->call("MatMul", {body[1], t.in(2)}), body[0]})});
  const auto after = t.end_scan({next, next});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "Scan", "fused Add Tanh", "end"));
  std::mt19937 engine(3);
  for (const int64_t steps : {0, 1, 6}) {
    const std::vector<std::pair<size_t, AnyValue>> given{{1, random_value(floats({steps, 1, 8}), engine)}};
    expect_same_as_reference(t, *planned, given);
  }
}

// Iterations and entries become one axis for nodes that treat entries one by one.
TEST(Batching, ConvolutionsOfFramesAreOneOfAllFrames) {
  for (const int64_t entries : {1, 2}) {
    TestGraph t({floats({entries, 16}), floats({5, entries, 3, 6}), floats({16, 3, 3}), floats({16, 16}), floats({16})},
                1);
    const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
    auto* padded = t->call("Pad", {body[1], t->constant_int64s({0, 0, 2, 0, 0, 0})});
    auto* frame = t->call("Conv", {padded, t.in(2), t.in(4)}, {Attribute::of("strides", std::vector<int64_t>{2})});
    auto* shrunk =
        t->call("MaxPool", {t->call("Relu", {frame})}, {Attribute::of("kernel_shape", std::vector<int64_t>{2})});
    auto* mean = t->call("GlobalAveragePool", {shrunk});
    auto* row = t->call("Squeeze", {mean, t->constant_int64s({2})});
    auto* x = t->call("MatMul", {row, t.in(3)});
    t->set_output(0, t.end_scan({t->call("Tanh", {t->call("Add", {body[0], x})})})[0]);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("Pad", "Conv", "Relu", "MaxPool", "GlobalAveragePool", "MatMul", "Scan",
                                                "fused Add Tanh", "end"));
    expect_same_as_reference(t, *planned);
  }
}

TEST(Batching, PadsOfSomeAxes) {
  TestGraph t({floats({1, 4, 6}), floats({5, 1, 4, 4}), floats({4, 4, 3})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  auto* padded = t->call("Pad", {body[1], t->constant_int64s({3, 1}), nullptr, t->constant_int64s({-1})},
                         {Attribute::of("mode", "reflect")});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], t->call("Conv", {padded, t.in(2)})})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Pad", "Conv", "Scan", "Add", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(Batching, ConvolutionsWithWeightsOfTheIterationStay) {
  TestGraph t({floats({1, 4, 4}), floats({5, 1, 4, 6}), floats({5, 4, 4, 3})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2)});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], t->call("Conv", {body[1], body[2]})})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Scan", "FusedConv", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(Batching, FramesOfAnyNumber) {
  TestGraph t({floats({2, 4, 4}), floats({Dim::symbol("T"), 2, 4, 6}), floats({4, 4, 3})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  t->set_output(0, t.end_scan({t->call("Add", {body[0], t->call("Conv", {body[1], t.in(2)})})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Reshape", "Conv", "Reshape", "Scan", "Add", "end"));
  std::mt19937 engine(3);
  for (const int64_t steps : {0, 1, 6}) {
    const std::vector<std::pair<size_t, AnyValue>> given{{1, random_value(floats({steps, 2, 4, 6}), engine)}};
    expect_same_as_reference(t, *planned, given);
  }
}

}  // namespace
}  // namespace treadle::testing_support
