// The expected cost of compiling a loop, and the expected gain.
#include "plan/body_cost.h"

#include <gtest/gtest.h>

#include <optional>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

// A state of so many floats, with a number of operations in an iteration.
plan::NativeGain gain_of(int64_t width, int operations) {
  TestGraph t({floats({width}), floats({50, width})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  ir::Value* h = body[0];
  for (int i = 0; i < operations; ++i)
    h = t->call(i % 2 == 0 ? "Tanh" : "Add", i % 2 == 0 ? std::vector{h} : std::vector{h, body[1]});
  t->set_output(0, t.end_scan({h})[0]);
  const auto planned = plan_of(t);
  EXPECT_EQ(planned->program->loops.size(), 1u);
  return plan::expected_gain(*planned->program, 0);
}

TEST(NativeGain, CodeIsWrittenForEveryVectorOfAShortRow) {
  const double narrow = gain_of(8, 40).compile_ns, wide = gain_of(112, 40).compile_ns;
  EXPECT_GT(wide, 2 * narrow);
  EXPECT_GT(gain_of(8, 80).compile_ns, narrow);
}

// In a loop over tiles, of four vectors.
TEST(NativeGain, LongRowsMakeNoMoreCode) {
  EXPECT_EQ(gain_of(300, 15).compile_ns, gain_of(3000, 15).compile_ns);
  EXPECT_LT(gain_of(3000, 15).compile_ns, gain_of(112, 15).compile_ns);
}

// Code for fewer vectors replaces code that would take too long to compile.
TEST(NativeGain, CompilingIsBounded) {
  EXPECT_EQ(gain_of(112, 100).compile_ns, gain_of(112, 190).compile_ns);
  EXPECT_GT(gain_of(112, 400).compile_ns, gain_of(112, 190).compile_ns);
}

TEST(NativeGain, NoMoreIsSavedThanAnIterationTakes) {
  for (const int64_t width : {1, 112, 3000}) {
    const plan::NativeGain gain = gain_of(width, 10);
    EXPECT_GT(gain.saved_ns, 0);
    EXPECT_LE(gain.saved_ns, gain.iteration_ns);
  }
}

// A Scan of so many iterations inside of a Scan, a Tanh each.
plan::NativeGain gain_around(int64_t iterations) {
  TestGraph t({floats({8}), floats({5, 8}), floats({iterations, 8})}, 1);
  const auto outer = t.begin_scan({t.in(0)}, {t.in(1)});
  const auto around = t.loop();
  const auto inner = t.begin_scan({outer[0]}, {t.in(2)});
  ir::Value* last = t.end_scan({t->call("Tanh", {t->call("Add", {inner[0], inner[1]})})})[0];
  t.resume(around);
  t->set_output(0, t.end_scan({t->call("Add", {last, outer[1]})})[0]);
  const auto planned = plan_of(t);
  EXPECT_EQ(planned->program->loops.size(), 2u);
  return plan::expected_gain(*planned->program, 0);
}

// The gain of inner loops counts for iterations that are still to come; each loop counts its own past iterations.
TEST(NativeGain, LoopsInsideCountWithTheirIterations) {
  const plan::NativeGain few = gain_around(10), many = gain_around(1000);
  EXPECT_EQ(few.saved_ns, many.saved_ns);
  EXPECT_EQ(few.compile_ns, many.compile_ns);
  EXPECT_GT(many.ahead_ns - many.saved_ns, 90 * (few.ahead_ns - few.saved_ns));
}

// A Loop of so many iterations, as a constant; nullopt: as an input.
int64_t planned_iterations(std::optional<int64_t> iterations) {
  TestGraph t({floats({8}), int64s({})}, 1);
  ir::Value* count = iterations ? t->constant(Tensor::scalar<int64_t>(ElementType::kInt64, *iterations)) : t.in(1);
  const auto body = t.begin_loop(count, {t.in(0)});
  t->set_output(0, t.end_loop({t->call("Tanh", {body[2]})})[0]);
  const auto planned = plan_of(t, false);
  EXPECT_EQ(planned->program->loops.size(), 1u);
  return plan::planned_iterations(*planned->program, planned->program->loops[0]);
}

TEST(PlannedIterations, AreThoseOfAConstantAndNeverBelowNone) {
  EXPECT_EQ(planned_iterations(7), 7);
  EXPECT_EQ(planned_iterations(-3), 0);
  EXPECT_EQ(planned_iterations(std::nullopt), -1);
}

TEST(NativeGain, LargeProductsAreNotWorthIt) {
  TestGraph t({floats({64, 256}), floats({256, 256}), floats({50, 64, 256})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(2)});
  t->set_output(0, t.end_scan({t->call("Add", {t->call("MatMul", {body[0], t.in(1)}), body[1]})})[0]);
  const auto planned = plan_of(t);
  EXPECT_EQ(plan::expected_gain(*planned->program, 0).saved_ns, 0);
}

}  // namespace
}  // namespace treadle::testing_support
