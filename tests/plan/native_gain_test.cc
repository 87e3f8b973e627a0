// What compiling a loop is expected to cost and to save.
#include <gtest/gtest.h>

#include "plan/native.h"
#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

// A state of so many floats, and so many operations on it in a trip.
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

// Code for fewer vectors takes the place of what would take too long.
TEST(NativeGain, CompilingIsBounded) {
  EXPECT_EQ(gain_of(112, 100).compile_ns, gain_of(112, 190).compile_ns);
  EXPECT_GT(gain_of(112, 400).compile_ns, gain_of(112, 190).compile_ns);
}

TEST(NativeGain, NoMoreIsSavedThanATripTakes) {
  for (const int64_t width : {1, 112, 3000}) {
    const plan::NativeGain gain = gain_of(width, 10);
    EXPECT_GT(gain.saved_ns, 0);
    EXPECT_LE(gain.saved_ns, gain.trip_ns);
  }
}

}  // namespace
}  // namespace treadle::testing_support
