// Each rewrite before and after, through the program: which nodes remain, where, and that results are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

AnyValue count(int64_t n) {
  return AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, n));
}

TEST(Identities, GoWhereTypesSaySo) {
  TestGraph t({floats({2, 3}), floats({1, 2, 3})}, 4);
  auto* a = t->call("Cast", {t.in(0)}, {Attribute::of("to", static_cast<int64_t>(ElementType::kFloat))});
  auto* b = t->call("Reshape", {a, t->constant_int64s({2, 3})});
  auto* c = t->call("Concat", {b}, {Attribute::of("axis", 0)});
  t->set_output(
      0, t->call("MatMul", {c, t->call("Transpose", {t.in(0)}, {Attribute::of("perm", std::vector<int64_t>{1, 0})})}));
  t->set_output(1, t->call("Transpose", {t.in(1)}, {Attribute::of("perm", std::vector<int64_t>{0, 1, 2})}));
  t->set_output(2, t->call("Expand", {t.in(1), t->constant_int64s({2, 1})}));
  t->set_output(3, t->call("Expand", {t.in(1), t->constant_int64s({2, 2, 3})}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("PermutedMatMul", "Expand"));
  expect_same_as_reference(t, *planned);
  EXPECT_EQ(plan_of(t, false)->listing().size(), 7u);
}

TEST(CommonNodes, AreMergedInTheirRegionAndFromAroundIt) {
  TestGraph t({int64s({}), floats({4, 4})}, 2);
  auto* first = t->call("MatMul", {t.in(1), t.in(1)});
  auto* second = t->call("MatMul", {t.in(1), t.in(1)});
  t->set_output(0, t->call("Softmax", {t->call("Add", {first, second})}));
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  auto* third = t->call("MatMul", {t.in(1), t.in(1)});
  const auto after = t.end_loop({t->call("MatMul", {body[2], third})});
  t->set_output(1, after[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "Add", "Softmax", "Loop", "MatMul", "end"));
  expect_same_as_reference(t, *planned, {{0, count(3)}});
}

TEST(CommonNodes, AttributesAndConstantsMakeTheDifference) {
  TestGraph t({floats({4, 4})}, 4);
  t->set_output(0, t->call("Softmax", {t.in(0)}, {Attribute::of("axis", 0)}));
  t->set_output(1, t->call("Softmax", {t.in(0)}, {Attribute::of("axis", 1)}));
  t->set_output(2, t->call("ReduceSum", {t.in(0), t->constant_int64s({1})}));
  t->set_output(3, t->call("ReduceSum", {t.in(0), t->constant_int64s({1})}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Softmax", "Softmax", "ReduceSum"));
  expect_same_as_reference(t, *planned);
}

TEST(CommonNodes, RandomOnesStay) {
  TestGraph t({floats({4}), floats({}), bools({})}, 2);
  t->set_output(0, t->call("Dropout", {t.in(0), t.in(1), t.in(2)}));
  t->set_output(1, t->call("Dropout", {t.in(0), t.in(1), t.in(2)}));
  EXPECT_EQ(plan_of(t)->listing().size(), 2u);
}

// The branches of an If do not enclose the nodes behind it.
TEST(CommonNodes, BranchesKeepTheirOwn) {
  TestGraph t({bools({}), floats({4, 4})}, 2);
  ir::Node* choice = t->node("If", std::vector{t.in(0)}, 1);
  t->begin_region(choice, "then_branch");
  t->region_output(t->call("MatMul", {t.in(1), t.in(1)}));
  t->end_region();
  t->begin_region(choice, "else_branch");
  t->region_output(t->call("Softmax", {t.in(1)}));
  t->end_region();
  t->set_output(0, choice->outputs[0]);
  t->set_output(1, t->call("MatMul", {t.in(1), t.in(1)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "Softmax", "MatMul"));
  for (const bool which : {false, true}) {
    expect_same_as_reference(t, *planned, {{0, AnyValue(Tensor::scalar<bool>(ElementType::kBool, which))}});
  }
}

TEST(Invariants, LeaveAllLoopsThatTheyDoNotDependOn) {
  TestGraph t({int64s({}), floats({4, 4})}, 1);
  const auto outer = t.begin_loop(t.in(0), {t.in(1)});
  auto* all = t->call("Softmax", {t->call("MatMul", {t.in(1), t.in(1)})});
  auto* state = t->call("MatMul", {outer[2], all});
  TestGraph::Loop around = t.loop();
  const auto inner = t.begin_loop(t.in(0), {state});
  auto* invariant = t->call("MatMul", {t.in(1), all});
  auto* outer_only = t->call("ReduceMax", {outer[2]});
  auto* next = t->call("Div", {t->call("MatMul", {inner[2], invariant}), outer_only});
  const auto inside = t.end_loop({next});
  t.resume(around);
  t->set_output(0, t.end_loop({inside[0]})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "Softmax", "MatMul", "Loop", "MatMul", "ReduceMax", "Loop",
                                              "MatMul", "Div", "end", "end"));
  for (const int64_t iterations : {0, 1, 3}) expect_same_as_reference(t, *planned, {{0, count(iterations)}});
}

TEST(Invariants, WhatCanFailStays) {
  TestGraph t({int64s({}), int64s({6}), int64s({2})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(2)});
  auto* picked = t->call("Gather", {t.in(1), t.in(2)});
  auto* quotient = t->call("Div", {t.in(2), picked});
  t->set_output(0, t.end_loop({t->call("Add", {body[2], quotient})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Loop", "Gather", "Div", "Add", "end"));
  // Indices out of range do no harm where no iteration runs.
  expect_same_as_reference(t, *planned,
                           {{0, count(0)}, {2, AnyValue(Tensor::of_int64(std::vector<int64_t>{60, -70}))}});
}

TEST(Invariants, BranchesInLoopsKeepTheirs) {
  TestGraph t({int64s({}), floats({4, 4}), bools({2})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  ir::Node* choice = t->node("If", std::vector{t->call("Gather", {t.in(2), body[0]})}, 1);
  t->begin_region(choice, "then_branch");
  t->region_output(t->call("MatMul", {t.in(1), t.in(1)}));
  t->end_region();
  t->begin_region(choice, "else_branch");
  t->region_output(t->call("Softmax", {body[2]}));
  t->end_region();
  t->set_output(0, t.end_loop({choice->outputs[0]})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Loop", "Gather", "MatMul", "Softmax", "end"));
  expect_same_as_reference(t, *planned, {{0, count(2)}});
}

TEST(Rewrites, NoneWithoutOptimization) {
  TestGraph t({int64s({}), floats({4, 4})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  auto* invariant = t->call("Tanh", {t->call("Exp", {t.in(1)})});
  auto* again = t->call("Exp", {t.in(1)});
  t->set_output(0, t.end_loop({t->call("Add", {t->call("Mul", {body[2], invariant}), again})})[0]);
  const auto plain = plan_of(t, false);
  EXPECT_THAT(plain->listing(), ElementsAre("Loop", "Exp", "Tanh", "Exp", "Mul", "Add", "end"));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Exp Tanh", "Loop", "fused Mul Add", "end"));
  expect_same_as_reference(t, *plain, {{0, count(3)}});
  expect_same_as_reference(t, *planned, {{0, count(3)}});
}

TEST(Transposes, ThatOnlyMoveAxesOfOneElementCopyNothing) {
  for (const bool known : {true, false}) {
    const Dim steps = known ? Dim(3) : Dim::symbol("T");
    TestGraph t({floats({steps, 1, 2, 5})}, 2);
    auto* moved = t->call("Transpose", {t.in(0)}, {ir::Attribute::of("perm", std::vector<int64_t>{0, 2, 1, 3})});
    auto* turned = t->call("Transpose", {t.in(0)}, {ir::Attribute::of("perm", std::vector<int64_t>{2, 1, 0, 3})});
    t->set_output(0, t->call("Exp", {moved}));
    t->set_output(1, t->call("Exp", {turned}));
    const auto planned = plan_of(t);
    const auto listing = planned->listing();
    EXPECT_EQ(std::count(listing.begin(), listing.end(), "Transpose"), 1);
    std::mt19937 engine(3);
    expect_same_as_reference(t, *planned, {{0, random_value(floats({3, 1, 2, 5}), engine)}});
  }
}

}  // namespace
}  // namespace treadle::testing_support
