// Parts that are taken out of stacked values, and states that are stacked of parts: which loops carry the parts, which
// stay as they are, and that results do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

ir::Value* part(TestGraph& t, ir::Value* whole, int64_t at, int64_t axis = 0) {
  return t->call("Gather", {whole, t->constant_int64(at)}, {Attribute::of("axis", axis)});
}

ir::Value* stacked(TestGraph& t, const std::vector<ir::Value*>& parts, int64_t axis = 0) {
  std::vector<ir::Value*> wide;
  for (ir::Value* v : parts) wide.push_back(t->call("Unsqueeze", {v, t->constant_int64s({axis})}));
  return t->call("Concat", wide, {Attribute::of("axis", axis)});
}

ir::Value* cut(TestGraph& t, ir::Value* v, int64_t begin, int64_t end, int64_t axis = 0) {
  return t->call("Slice", {v, t->constant_int64s({begin}), t->constant_int64s({end}), t->constant_int64s({axis})});
}

std::vector<ir::Value*> split(TestGraph& t, ir::Value* v, std::initializer_list<int64_t> sizes) {
  ir::Node* node = t->node("Split", std::vector{v, t->constant_int64s(sizes)}, sizes.size());
  return {node->outputs.begin(), node->outputs.end()};
}

// --- without a loop

TEST(StackedParts, AreWhatWasPutIn) {
  TestGraph t({floats({3}), floats({3}), floats({3})}, 4);
  auto* whole = stacked(t, {t->call("Exp", {t.in(0)}), t->call("Neg", {t.in(1)}), t->call("Abs", {t.in(2)})}, 1);
  t->set_output(0, t->call("Sin", {part(t, whole, 0, 1)}));
  t->set_output(1, t->call("Cos", {part(t, whole, -2, -1)}));
  t->set_output(2, t->call("Tan", {t->call("Squeeze", {cut(t, whole, -1, 9, 1), t->constant_int64s({1})})}));
  t->set_output(3, t->call("Sign", {part(t, whole, 1, 0)}));  // a row across all: the one reader of the whole
  const auto planned = plan_of(t);
  expect_same_as_reference(t, *planned);

  TestGraph without({floats({3}), floats({3})}, 1);
  auto* two = stacked(without, {without->call("Exp", {without.in(0)}), without.in(1)});
  without->set_output(0, without->call("Softmax", {part(without, two, 0)}));
  EXPECT_THAT(plan_of(without)->listing(), ElementsAre("Exp", "Softmax"));
  expect_same_as_reference(without, *plan_of(without));
}

TEST(StackedParts, OfSizesThatDiffer) {
  TestGraph t({floats({2, 3}), floats({1, 3}), floats({4, 3})}, 4);
  auto* whole = t->call("Concat", {t.in(0), t.in(1), t.in(2)}, {Attribute::of("axis", 0)});
  const auto parts = split(t, whole, {2, 1, 4});
  t->set_output(0, t->call("Softmax", {parts[0]}));
  t->set_output(1, t->call("Softmax", {part(t, whole, 2)}));
  t->set_output(2, t->call("Softmax", {parts[2]}));
  t->set_output(3, t->call("Softmax", {cut(t, whole, 0, 2)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), Not(Contains("Concat")));
  EXPECT_THAT(planned->listing(), Not(Contains("Split")));
  expect_same_as_reference(t, *planned);
}

TEST(StackedParts, WhatLiesAcrossPartsStays) {
  TestGraph t({floats({2, 3}), floats({1, 3})}, 4);
  auto* whole = t->call("Concat", {t.in(0), t.in(1)}, {Attribute::of("axis", 0)});
  t->set_output(0, cut(t, whole, 1, 3));
  t->set_output(1, part(t, whole, 1));     // one row of a part of two
  t->set_output(2, part(t, whole, 2, 1));  // along another axis
  t->set_output(3, t->call("Slice", {whole, t->constant_int64s({2}), t->constant_int64s({0}), t->constant_int64s({0}),
                                     t->constant_int64s({-1})}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Concat", "Slice", "Gather", "Gather", "Slice"));
  expect_same_as_reference(t, *planned);
}

TEST(StackedParts, AtPositionsThatAreData) {
  TestGraph t({floats({3}), floats({3}), int64s({})}, 1);
  t->set_output(0, t->call("Gather", {stacked(t, {t.in(0), t.in(1)}), t.in(2)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), Contains("Concat"));
  expect_same_as_reference(t, *planned, {{2, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 1))}});
}

// --- states

// A mass on a spring, x' = x + v, v' = v - k x, in a state of two rows.
std::vector<ir::Value*> spring(TestGraph& t, ir::Value* x, ir::Value* v, ir::Value* k) {
  auto* moved = t->call("Add", {x, v});
  return {moved, t->call("Sub", {v, t->call("Mul", {k, moved})})};
}

TEST(StackedStates, OfASimulationAreCarriedApart) {
  for (const int64_t axis : {0, 1}) {
    const Shape shape = axis == 0 ? Shape{2, 8} : Shape{8, 2};
    TestGraph t({floats(shape), floats({8}), int64s({})}, 2);
    const auto body = t.begin_loop(t.in(2), {t.in(0)}, 1);
    const auto next = spring(t, part(t, body[2], 0, axis), part(t, body[2], 1, axis - 2), t.in(1));
    const auto after = t.end_loop({stacked(t, next, axis), next[0]});
    t->set_output(0, after[0]);
    t->set_output(1, after[1]);
    t.loop()->region("body")->output_types[2] = floats({8});
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("Gather", "Gather", "Loop", "fused Add Mul Sub", "end", "Concat"));
    for (const int64_t iterations : {0, 1, 5}) {
      expect_same_as_reference(t, *planned, {{2, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, iterations))}});
    }
  }
}

// A filter whose state is two samples and one coefficient, of a Scan that splits them.
TEST(StackedStates, OfAFilterThatSplitsThem) {
  TestGraph t({floats({3, 4}), floats({9, 1, 4})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 1);
  const auto parts = split(t, body[0], {2, 1});
  auto* level = t->call("Add", {t->call("Mul", {parts[1], t->number(0.5, ElementType::kFloat)}), body[1]});
  auto* lines = t->call("Mul", {parts[0], level});
  const auto after = t.end_scan({t->call("Concat", {lines, level}, {Attribute::of("axis", 0)}), lines});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Slice", "Slice", "Scan", "fused Mul Add", "Mul", "end", "Concat"));
  expect_same_as_reference(t, *planned);
}

// As beam searches do with the keys and values of the picked beams.
TEST(StackedStates, PickedAlongAnotherAxisAndGrowing) {
  TestGraph t({floats({2, 3, 1}), int64s({3}), int64s({})}, 1);
  const auto body = t.begin_loop(t.in(2), {t.in(0)});
  body[2]->type = Type::tensor(ElementType::kFloat, Shape{2, 3, Dim::unknown()});
  auto* picked = t->call("Gather", {body[2], t.in(1)}, {Attribute::of("axis", 1)});
  std::vector<ir::Value*> grown;
  for (const int64_t i : {0, 1}) {
    auto* one = part(t, picked, i);
    auto* sum = t->call("ReduceSum", {one, t->constant_int64s({1})});
    grown.push_back(t->call("Concat", {one, sum}, {Attribute::of("axis", 1)}));
  }
  t->set_output(0, t.end_loop({stacked(t, grown)})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Gather", "Gather", "Loop", "Gather", "Gather", "ReduceSum", "Concat",
                                              "ReduceSum", "Concat", "end", "Unsqueeze", "Unsqueeze", "Concat"));
  for (const int64_t iterations : {0, 4}) {
    expect_same_as_reference(t, *planned,
                             {{1, AnyValue(Tensor::of_int64(std::vector<int64_t>{2, 0, -3}))},
                              {2, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, iterations))}});
  }
}

TEST(StackedStates, ReadFromInnerLoops) {
  TestGraph t({floats({2, 4}), int64s({})}, 1);
  const auto body = t.begin_loop(t.in(1), {t.in(0)});
  const auto outer = t.loop();
  const auto inner = t.begin_loop(t.in(1), {part(t, body[2], 1)});
  auto* sum = t.end_loop({t->call("Add", {inner[2], part(t, body[2], 0)})})[0];
  t.resume(outer);
  t->set_output(0, t.end_loop({stacked(t, {sum, t->call("Tanh", {part(t, body[2], 0)})})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(),
              ElementsAre("Gather", "Gather", "Loop", "Loop", "Add", "end", "Tanh", "end", "Concat"));
  expect_same_as_reference(t, *planned, {{1, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 3))}});
}

// Reasons why a state stays whole: a node reads all of it, or across the parts.
TEST(StackedStates, ThatAreReadWholeStay) {
  using Reader = ir::Value* (*)(TestGraph&, ir::Value*);
  const Reader readers[] = {
      [](TestGraph& t, ir::Value* s) { return t->call("ReduceSum", {s, t->constant_int64s({0})}); },
      [](TestGraph& t, ir::Value* s) { return t->call("Squeeze", {cut(t, s, 1, 2, 1)}); },
      [](TestGraph& t, ir::Value* s) { return cut(t, s, 0, 2); },
      [](TestGraph& t, ir::Value* s) { return t->call("Gather", {s, t.in(2)}); },
  };
  for (const Reader read : readers) {
    TestGraph t({floats({2, 2}), int64s({}), int64s({})}, 2);
    const auto body = t.begin_loop(t.in(1), {t.in(0)}, 1);
    const auto next = spring(t, part(t, body[2], 0), part(t, body[2], 1), t->number(0.25, ElementType::kFloat));
    const auto after = t.end_loop({stacked(t, next), read(t, body[2])});
    t->set_output(0, after[0]);
    t->set_output(1, after[1]);
    const auto planned = plan_of(t);
    const auto listing = planned->listing();
    const auto end = std::ranges::find(listing, "end");
    EXPECT_NE(std::ranges::find(listing.begin(), end, "Concat"), end) << "reader " << &read - readers;
    expect_same_as_reference(t, *planned,
                             {{1, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 3))},
                              {2, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 1))}});
  }
}

// The next iteration reads another number of parts than this one made.
TEST(StackedStates, ThatGrowByPartsStay) {
  TestGraph t({floats({1, 4}), int64s({})}, 1);
  const auto body = t.begin_loop(t.in(1), {t.in(0)});
  body[2]->type = Type::tensor(ElementType::kFloat, Shape{Dim::unknown(), 4});
  auto* first = part(t, body[2], 0);
  t->set_output(0, t.end_loop({stacked(t, {t->call("Neg", {first}), first})})[0]);
  const auto planned = plan_of(t);
  for (const int64_t iterations : {0, 1, 3}) {
    expect_same_as_reference(t, *planned, {{1, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, iterations))}});
  }
}

// Two states that only one Concat makes stay, because the second reads it too.
TEST(StackedStates, WhoseNextValueIsReadElsewhereStay) {
  TestGraph t({floats({2, 4}), floats({2, 4}), int64s({})}, 2);
  const auto body = t.begin_loop(t.in(2), {t.in(0), t.in(1)});
  const auto next = spring(t, part(t, body[2], 0), part(t, body[2], 1), t->number(0.25, ElementType::kFloat));
  auto* whole = stacked(t, next);
  const auto after = t.end_loop({whole, t->call("Add", {body[3], whole})});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), Contains("Loop"));
  EXPECT_THAT(planned->listing().back(), "end");
  expect_same_as_reference(t, *planned, {{2, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 3))}});
}

}  // namespace
}  // namespace treadle::testing_support
