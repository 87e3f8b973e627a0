// Loops that pick their inputs by the iteration's number: which become Scans, which stay, and that both give the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

AnyValue number(int64_t n) {
  return AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, n));
}

TEST(CountedLoops, GatherByTheCounterIsAScanInput) {
  TestGraph t({floats({1, 16}), floats({7, 1, 8}), floats({8, 16})}, 2);
  const auto body = t.begin_loop(t->constant_int64(7), {t.in(0)}, 1);
  auto* x = t->call("Gather", {t.in(1), body[0]});
  auto* next = t->call("Tanh", {t->call("Add", {t->call("MatMul", {x, t.in(2)}), body[2]})});
  const auto after = t.end_loop({next, next});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "Scan", "fused Add Tanh", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(CountedLoops, OtherAxesAndIndicesOfOneElement) {
  TestGraph t({floats({3, 1, 16}), floats({3, 5, 8}), floats({8, 16})}, 1);
  const auto body = t.begin_loop(t->constant_int64(5), {t.in(0)});
  auto* index = t->call("Unsqueeze", {t->call("Cast", {body[0]}, {Attribute::of("to", 6)}), t->constant_int64s({0})});
  auto* x = t->call("Gather", {t.in(1), index}, {Attribute::of("axis", -2)});
  t->set_output(0, t.end_loop({t->call("Add", {t->call("MatMul", {x, t.in(2)}), body[2]})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MoveAxis", "MatMul", "Scan", "Add", "end"));
  expect_same_as_reference(t, *planned);
}

// Positions 2 to 5 of 9, and 7 down to 4.
TEST(CountedLoops, PartsAndTheWayBack) {
  TestGraph t({floats({1, 16}), floats({9, 1, 8}), floats({8, 16})}, 2);
  const auto body = t.begin_loop(t->constant_int64(4), {t.in(0)}, 1);
  auto* x = t->call("Gather", {t.in(1), t->call("Add", {body[0], t->constant_int64(2)})});
  auto* back = t->call("Gather", {t.in(1), t->call("Sub", {t->constant_int64(7), body[0]})});
  auto* sum = t->call("Mul", {t->call("MatMul", {x, t.in(2)}), t->call("MatMul", {back, t.in(2)})});
  auto* next = t->call("Add", {sum, body[2]});
  const auto after = t.end_loop({next, next});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Slice", "Slice", "MatMul", "MatMul", "Scan", "fused Mul Add", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(CountedLoops, SliceOfOnePosition) {
  TestGraph t({floats({2, 1, 8}), floats({2, 6, 8})}, 1);
  const auto body = t.begin_loop(t->constant_int64(6), {t.in(0)});
  auto* from = t->call("Reshape", {body[0], t->constant_int64s({1})});
  auto* to = t->call("Add", {from, t->constant_int64s({1})});
  auto* x = t->call("Slice", {t.in(1), from, to, t->constant_int64s({1})});
  t->set_output(0, t.end_loop({t->call("Add", {x, body[2]})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MoveAxis", "Scan", "Add", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(CountedLoops, TheCounterStaysWhereItIsRead) {
  TestGraph t({floats({8}), floats({6, 8})}, 1);
  const auto body = t.begin_loop(t->constant_int64(6), {t.in(0)});
  auto* x = t->call("Gather", {t.in(1), body[0]});
  auto* iteration = t->call("Cast", {body[0]}, {Attribute::of("to", 1)});
  t->set_output(0, t.end_loop({t->call("Add", {t->call("Mul", {x, iteration}), body[2]})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Range", "Scan", "Cast", "fused Mul Add", "end"));
  expect_same_as_reference(t, *planned);
}

// An inner loop may pick by the counter of the outer one.
TEST(CountedLoops, ThroughNesting) {
  TestGraph t({floats({8}), floats({5, 8}), floats({3, 8})}, 1);
  const auto outer = t.begin_loop(t->constant_int64(5), {t.in(0)});
  TestGraph::Loop around = t.loop();
  const auto inner = t.begin_loop(t->constant_int64(3), {outer[2]});
  auto* both = t->call("Mul", {t->call("Gather", {t.in(1), outer[0]}), t->call("Gather", {t.in(2), inner[0]})});
  const auto inside = t.end_loop({t->call("Add", {both, inner[2]})});
  t.resume(around);
  t->set_output(0, t.end_loop({inside[0]})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Scan", "Scan", "fused Mul Add", "end", "end"));
  expect_same_as_reference(t, *planned);
}

TEST(CountedLoops, IterationsThatAreTheSizeOfTheData) {
  TestGraph t({floats({8}), floats({Dim::symbol("T"), 8})}, 2);
  auto* size = t->call("Shape", {t.in(1)}, {Attribute::of("start", 0), Attribute::of("end", 1)});
  const auto body = t.begin_loop(t->call("Squeeze", {size}), {t.in(0)}, 1);
  auto* back = t->call("Sub", {t->call("Sub", {size, t->constant_int64s({1})}), body[0]});
  auto* x = t->call("Squeeze", {t->call("Gather", {t.in(1), back}), t->constant_int64s({0})});
  auto* next = t->call("Add", {x, body[2]});
  const auto after = t.end_loop({next, next});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), testing::Contains("Scan"));
  EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("Gather")));
  std::mt19937 engine(3);
  for (const int64_t steps : {0, 1, 6}) {
    expect_same_as_reference(t, *planned, {{1, random_value(floats({steps, 8}), engine)}});
  }
}

// Indices that could be outside of the data, iterations that are not counted, states that change their size.
TEST(CountedLoops, OthersStay) {
  const auto loop = [](int64_t iterations, int64_t offset) {
    TestGraph t({floats({8}), floats({6, 8})}, 1);
    const auto body = t.begin_loop(t->constant_int64(iterations), {t.in(0)});
    auto* x = t->call("Gather", {t.in(1), t->call("Add", {body[0], t->constant_int64(offset)})});
    t->set_output(0, t.end_loop({t->call("Add", {x, body[2]})})[0]);
    return plan_of(t)->listing();
  };
  EXPECT_THAT(loop(4, 2), testing::Contains("Scan"));
  EXPECT_THAT(loop(5, 2), testing::Contains("Loop"));
  EXPECT_THAT(loop(2, -1), testing::Contains("Loop"));

  TestGraph unknown({floats({8}), floats({6, 8}), int64s({})}, 1);
  const auto body = unknown.begin_loop(unknown.in(2), {unknown.in(0)});
  unknown->set_output(
      0, unknown.end_loop({unknown->call("Add", {unknown->call("Gather", {unknown.in(1), body[0]}), body[2]})})[0]);
  const auto planned = plan_of(unknown);
  EXPECT_THAT(planned->listing(), testing::Contains("Loop"));
  for (const int64_t iterations : {0, 6}) expect_same_as_reference(unknown, *planned, {{2, number(iterations)}});

  TestGraph grows({floats({1, 8}), floats({6, 1, 8})}, 1);
  const auto growing = grows.begin_loop(grows->constant_int64(6), {grows.in(0)});
  auto* x = grows->call("Gather", {grows.in(1), growing[0]});
  grows->set_output(0, grows.end_loop({grows->call("Concat", {growing[2], x}, {Attribute::of("axis", 0)})})[0]);
  EXPECT_THAT(plan_of(grows)->listing(), testing::Contains("Loop"));
  expect_same_as_reference(grows, *plan_of(grows));
}

}  // namespace
}  // namespace treadle::testing_support
