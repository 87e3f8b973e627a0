// Nodes that only scan outputs need: which run behind their loop, which stay, and that results do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

// tanh(x + h R), and the result of `row` for the scan output.
template <class Row>
void write_recurrence(TestGraph& t, bool reverse, const Row& row) {
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1, reverse);
  auto* next = t->call("Tanh", {t->call("Add", {body[1], t->call("MatMul", {body[0], t.in(2)})})});
  auto* out = row(next, body[1]);
  if (reverse) t.loop()->attributes.set(Attribute::of("scan_output_directions", std::vector<int64_t>{1}));
  const auto after = t.end_scan({next, out});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
}

TEST(Sinking, ProjectionOfTheStateAndWhatFollows) {
  for (const bool reverse : {false, true}) {
    TestGraph t({floats({1, 16}), floats({7, 1, 16}), floats({16, 16}), floats({16, 24}), floats({24})}, 2);
    write_recurrence(t, reverse, [&](auto* h, auto*) {
      auto* logits = t->call("Add", {t->call("MatMul", {h, t.in(3)}), t.in(4)});
      return t->call("Softmax", {logits}, {Attribute::of("axis", 1)});
    });
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("Scan", "MatMul", "fused Add Tanh", "end", "MatMul", "Add", "Softmax"));
    expect_same_as_reference(t, *planned);
  }
}

// Nodes that lead to a product move too if the loop then returns no more; scan inputs are available already.
TEST(Sinking, ProducersGoAlong) {
  TestGraph t({floats({1, 16}), floats({7, 1, 16}), floats({16, 16}), floats({16, 24})}, 2);
  write_recurrence(t, false, [&](auto* h, auto* x) {
    return t->call("MatMul", {t->call("Mul", {t->call("Relu", {h}), x}), t.in(3)});
  });
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Scan", "MatMul", "fused Add Tanh", "end", "fused Relu Mul", "MatMul"));
  expect_same_as_reference(t, *planned);
}

TEST(Sinking, ConvolutionAndPool) {
  TestGraph t({floats({2, 4, 8}), floats({7, 2, 4, 8}), floats({6, 4, 3})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  auto* next = t->call("Tanh", {t->call("Add", {body[0], body[1]})});
  auto* windows = t->call("AveragePool", {t->call("Conv", {next, t.in(2)})},
                          {Attribute::of("kernel_shape", std::vector<int64_t>{2})});
  const auto after = t.end_scan({next, windows});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Scan", "fused Add Tanh", "end", "Conv", "AveragePool"));
  expect_same_as_reference(t, *planned);
}

TEST(Sinking, GemmOfSeveralRowsReductionAndSplit) {
  TestGraph t({floats({3, 16}), floats({7, 3, 16}), floats({16, 16}), floats({24, 16}), floats({1, 24})}, 2);
  write_recurrence(t, false, [&](auto* h, auto*) {
    auto* gemm = t->call("Gemm", {h, t.in(3), t.in(4)}, {Attribute::of("transB", 1)});
    ir::Node* parts =
        t->node("Split", std::vector{gemm}, 2, {Attribute::of("axis", -1), Attribute::of("num_outputs", 2)});
    auto* turned = t->call("Transpose", {parts->outputs[0]}, {Attribute::of("perm", std::vector<int64_t>{1, 0})});
    auto* columns = t->call("ReduceMax", {turned, t->constant_int64s({1})});           // [12, 1]
    auto* rows = t->call("ReduceMax", {parts->outputs[1], t->constant_int64s({-2})});  // [1, 12]
    auto* both = t->call("Concat", {columns, t->call("Reshape", {rows, t->constant_int64s({12, 1})})},
                         {Attribute::of("axis", -1)});
    return t->call("Slice", {both, t->constant_int64s({2}), t->constant_int64s({9}), t->constant_int64s({0})});
  });
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Scan", "MatMul", "fused Add Tanh", "end", "Gemm", "Split", "Transpose",
                                              "ReduceMax", "ReduceMax", "Concat", "Slice"));
  expect_same_as_reference(t, *planned);
}

TEST(Sinking, FunctionsOfFewElements) {
  TestGraph t({floats({}), floats({9})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  auto* next = t->call("Add", {body[0], body[1]});
  const auto after = t.end_scan({next, t->call("Sin", {next})});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Scan", "Add", "end", "Sin"));
  expect_same_as_reference(t, *planned);
}

TEST(Sinking, ReductionsOfScalarsStayWhereTheyAre) {
  TestGraph t({floats({}), floats({9})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  auto* next = t->call("Add", {body[0], body[1]});
  const auto after =
      t.end_scan({next, t->call("Sin", {t->call("ReduceMin", {next}, {Attribute::of("keepdims", int64_t{0})})})});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  expect_same_as_reference(t, *plan_of(t));
}

// A loop that ends by its own data has rows for the iterations that happened.
TEST(Sinking, IterationsThatAreNotKnown) {
  TestGraph t({floats({1, 16}), floats({16, 16}), floats({16, 24}), int64s({})}, 1);
  const auto body = t.begin_loop(t.in(3), {t.in(0)}, 1);
  auto* next = t->call("Tanh", {t->call("MatMul", {body[2], t.in(1)})});
  t->set_output(0, t.end_loop({next, t->call("MatMul", {next, t.in(2)})})[1]);
  t.loop()->region("body")->output_types[2] = floats({1, 24});
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Loop", "MatMul", "Tanh", "end", "MatMul"));
  for (const int64_t iterations : {0, 1, 6}) {
    expect_same_as_reference(t, *planned, {{3, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, iterations))}});
  }
}

TEST(Sinking, WhatTheLoopNeedsStays) {
  TestGraph t({floats({1, 16}), floats({7, 1, 16}), floats({16, 16}), floats({16, 16})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  auto* h = t->call("Add", {body[1], t->call("MatMul", {body[0], t.in(2)})});
  auto* y = t->call("MatMul", {h, t.in(3)});
  const auto after = t.end_scan({t->call("Tanh", {y}), y});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  EXPECT_THAT(plan_of(t)->listing(), ElementsAre("Scan", "MatMul", "Add", "MatMul", "Tanh", "end"));
}

// Cheap arithmetic on values in registers, results much smaller than their operands, nodes that can fail.
TEST(Sinking, WhatWouldNotPayStays) {
  TestGraph t({floats({4, 16}), floats({7, 4, 16}), int64s({7}), int64s({4})}, 4);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2)}, 3);
  auto* next = t->call("Add", {body[0], body[1]});
  auto* cheap = t->call("Mul", {next, body[1]});
  auto* sum = t->call("ReduceSum", {t->call("Mul", {next, next}), t->constant_int64s({1})});
  auto* picked = t->call("Gather", {t.in(3), body[2]});
  const auto after = t.end_scan({next, cheap, sum, picked});
  for (size_t i = 0; i < 4; ++i) t->set_output(i, after[i]);
  const auto listing = plan_of(t)->listing();
  EXPECT_EQ(listing.front(), "Scan");
  EXPECT_EQ(listing.back(), "end");
}

}  // namespace
}  // namespace treadle::testing_support
