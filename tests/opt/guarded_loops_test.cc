// Loops whose iterations or indices are unknown at planning: both forms exist side by side, and give the results of the
// reference interpreter.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::AllOf;
using testing::Contains;
using testing::Not;

AnyValue number(int64_t n) {
  return AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, n));
}

AnyValue floats_of(Shape shape) {
  std::mt19937 engine(3);
  return random_value(floats(std::move(shape)), engine);
}

const auto kBothForms = AllOf(Contains("Scan"), Contains("Loop"));

TEST(GuardedLoops, IterationsFromAnInput) {
  TestGraph t({floats({1, 64}), floats({7, 1, 32}), floats({32, 64}), int64s({})}, 2);
  const auto body = t.begin_loop(t.in(3), {t.in(0)}, 1);
  auto* x = t->call("Gather", {t.in(1), body[0]});
  auto* next = t->call("Tanh", {t->call("Add", {t->call("MatMul", {x, t.in(2)}), body[2]})});
  const auto after = t.end_loop({next, next});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), kBothForms);
  EXPECT_THAT(planned->listing(), Contains("Slice"));
  for (const int64_t iterations : {-3, 0, 1, 4, 7}) expect_same_as_reference(t, *planned, {{3, number(iterations)}});
}

// From an offset on, and backwards from an end; both are inputs of the model.
TEST(GuardedLoops, OffsetsFromInputs) {
  TestGraph t({floats({8}), floats({Dim::symbol("T"), 8}), int64s({}), int64s({1}), int64s({})}, 1);
  const auto body = t.begin_loop(t.in(2), {t.in(0)});
  auto* x = t->call("Gather", {t.in(1), t->call("Squeeze", {t->call("Add", {t.in(3), body[0]})})});
  auto* back = t->call("Gather", {t.in(1), t->call("Sub", {t.in(4), body[0]})});
  t->set_output(0, t.end_loop({t->call("Add", {t->call("Mul", {x, back}), body[2]})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), kBothForms);
  const auto run = [&](int64_t iterations, int64_t from, int64_t last) {
    Tensor offset = Tensor::of_int64(std::vector<int64_t>{from});
    expect_same_as_reference(
        t, *planned, {{1, floats_of({6, 8})}, {2, number(iterations)}, {3, AnyValue(offset)}, {4, number(last)}});
  };
  run(6, 0, 5);
  run(3, 2, 4);
  run(2, -2, 3);  // negative indices count from the end
  run(4, 1, 2);   // the last one is -1
}

// while (k < n) { ...; ++k; }, with a state that counts.
TEST(GuardedLoops, AConditionThatComparesACounter) {
  TestGraph t({floats({8}), floats({Dim::symbol("T"), 8}), int64s({}), bools({})}, 2);
  auto* size = t->call("Squeeze", {t->call("Shape", {t.in(1)}, {Attribute::of("start", 0), Attribute::of("end", 1)})});
  ir::Node* loop = t->node("Loop", std::vector<ir::Value*>{nullptr, t.in(3), t.in(0), t.in(2)}, 3);
  t->begin_region(loop, "body");
  t->region_input("i", int64s({}));
  auto* go = t->region_input("c", bools({}));
  auto* h = t->region_input("h", floats({8}));
  auto* k = t->region_input("k", int64s({}));
  auto* next = t->call("Add", {h, t->call("Gather", {t.in(1), k})});
  auto* more = t->call("Add", {t->constant_int64(1), k});
  t->region_output(t->call("And", {t->call("Greater", {size, more}), go}));
  for (ir::Value* v : {next, more, next}) t->region_output(v);
  t->end_region();
  t->set_output(0, loop->outputs[0]);
  t->set_output(1, loop->outputs[2]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), kBothForms);
  const auto run = [&](int64_t steps, int64_t from, bool condition) {
    AnyValue first(Tensor::scalar<bool>(ElementType::kBool, condition));
    expect_same_as_reference(t, *planned, {{1, floats_of({steps, 8})}, {2, number(from)}, {3, first}});
  };
  run(6, 0, true);
  run(6, 4, true);
  run(6, 5, true);
  run(6, -2, true);
  run(6, 0, false);
}

// Numbers whose sum would overflow are not summed.
TEST(GuardedLoops, ExtremeNumbers) {
  TestGraph t({floats({8}), floats({Dim::symbol("T"), 8}), int64s({}), int64s({})}, 1);
  const auto body = t.begin_loop(t.in(2), {t.in(0)});
  auto* x = t->call("Gather", {t.in(1), t->call("Add", {t.in(3), body[0]})});
  t->set_output(0, t.end_loop({t->call("Add", {x, body[2]})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), kBothForms);
  const AnyValue x_of_6 = floats_of({6, 8});
  expect_same_as_reference(t, *planned, {{1, x_of_6}, {2, number(INT64_MIN)}, {3, number(INT64_MAX)}});
  expect_same_as_reference(t, *planned, {{1, x_of_6}, {2, number(0)}, {3, number(INT64_MIN)}});
}

// Inside of other loops, where no trip count fits, and where nothing is gained.
TEST(GuardedLoops, OthersStay) {
  TestGraph rows({floats({8}), floats({6, 8}), int64s({})}, 1);
  const auto plain = rows.begin_loop(rows.in(2), {rows.in(0)});
  rows->set_output(0, rows.end_loop({rows->call("Add", {rows->call("Gather", {rows.in(1), plain[0]}), plain[2]})})[0]);
  EXPECT_THAT(plan_of(rows)->listing(), Not(Contains("Scan")));

  TestGraph inner({floats({8}), floats({Dim::symbol("T"), 8}), int64s({3})}, 1);
  const auto outer = inner.begin_scan({inner.in(0)}, {inner.in(2)});
  TestGraph::Loop around = inner.loop();
  const auto body = inner.begin_loop(outer[1], {outer[0]});
  const auto inside = inner.end_loop({inner->call("Add", {inner->call("Gather", {inner.in(1), body[0]}), body[2]})});
  inner.resume(around);
  inner->set_output(0, inner.end_scan({inside[0]})[0]);
  EXPECT_THAT(plan_of(inner)->listing(), AllOf(Contains("Loop"), Not(Contains("Slice"))));

  TestGraph beyond({floats({64}), floats({6, 32}), int64s({}), floats({32, 64})}, 1);
  const auto far = beyond.begin_loop(beyond.in(2), {beyond.in(0)});
  auto* x = beyond->call("Gather", {beyond.in(1), beyond->call("Add", {far[0], beyond->constant_int64(6)})});
  beyond->set_output(0, beyond.end_loop({beyond->call("Add", {beyond->call("MatMul", {x, beyond.in(3)}), far[2]})})[0]);
  EXPECT_THAT(plan_of(beyond)->listing(), Not(Contains("Scan")));
}

}  // namespace
}  // namespace treadle::testing_support
