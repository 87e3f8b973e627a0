// Conditions that loops do not change: asked once, around the loop.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using testing::ElementsAre;

AnyValue flag(bool b) {
  return AnyValue(Tensor::scalar<bool>(ElementType::kBool, b));
}

// `condition` ? softmax(h R) : tanh(h), too much to run both.
ir::Value* write_choice(TestGraph& t, ir::Value* condition, ir::Value* h, ir::Value* weights) {
  ir::Node* choice = t->node("If", std::vector{condition}, 1);
  t->begin_region(choice, "then_branch");
  t->region_output(t->call("Softmax", {t->call("MatMul", {h, weights})}));
  t->end_region();
  t->begin_region(choice, "else_branch");
  t->region_output(t->call("Tanh", {h}));
  t->end_region();
  return choice->outputs[0];
}

void check_both(TestGraph& t, size_t condition) {
  const auto planned = plan_of(t);
  for (const bool b : {false, true}) expect_same_as_reference(t, *planned, {{condition, flag(b)}});
}

TEST(Unswitch, TheLoopStandsInBothBranches) {
  TestGraph t({floats({1, 16}), floats({6, 1, 16}), floats({16, 16}), bools({})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  auto* h = t->call("Add", {write_choice(t, t.in(3), body[0], t.in(2)), body[1]});
  const auto after = t.end_scan({h, h});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  EXPECT_THAT(plan_of(t)->listing(),
              ElementsAre("Scan", "MatMul", "Softmax", "Add", "end", "Scan", "fused Tanh Add", "end"));
  check_both(t, 3);
}

TEST(Unswitch, ThroughNesting) {
  TestGraph t({floats({1, 16}), floats({4, 1, 16}), floats({16, 16}), bools({})}, 1);
  const auto outer = t.begin_scan({t.in(0)}, {t.in(1)});
  TestGraph::Loop around = t.loop();
  const auto inner = t.begin_scan({outer[0]}, {t.in(1)});
  auto* h = t->call("Add", {write_choice(t, t.in(3), inner[0], t.in(2)), inner[1]});
  auto* inside = t.end_scan({h})[0];
  t.resume(around);
  t->set_output(0, t.end_scan({t->call("Mul", {inside, outer[1]})})[0]);
  EXPECT_THAT(plan_of(t)->listing(), ElementsAre("Scan", "Scan", "MatMul", "Softmax", "Add", "end", "Mul", "end",
                                                 "Scan", "Scan", "fused Tanh Add", "end", "Mul", "end"));
  check_both(t, 3);
}

TEST(Unswitch, EveryIfOnTheCondition) {
  TestGraph t({floats({1, 16}), floats({6, 1, 16}), floats({16, 16}), bools({}), bools({})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  auto* a = write_choice(t, t.in(3), body[0], t.in(2));
  auto* b = write_choice(t, t.in(4), a, t.in(2));
  auto* c = write_choice(t, t.in(3), b, t.in(2));
  t->set_output(0, t.end_scan({t->call("Add", {c, body[1]})})[0]);
  const auto planned = plan_of(t);
  const auto listing = planned->listing();
  EXPECT_EQ(std::count(listing.begin(), listing.end(), "Scan"), 4);
  for (const bool x : {false, true}) {
    for (const bool y : {false, true}) expect_same_as_reference(t, *planned, {{3, flag(x)}, {4, flag(y)}});
  }
}

TEST(Unswitch, WhatTheLoopDecidesStays) {
  TestGraph t({floats({1, 16}), floats({6, 1, 16}), floats({16, 16}), bools({6})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(3)});
  t->set_output(0, t.end_scan({t->call("Add", {write_choice(t, body[2], body[0], t.in(2)), body[1]})})[0]);
  const auto planned = plan_of(t);
  const auto listing = planned->listing();
  EXPECT_EQ(std::count(listing.begin(), listing.end(), "Scan"), 1);
  expect_same_as_reference(t, *planned);
}

}  // namespace
}  // namespace treadle::testing_support
