// Loops that carry nothing: which run for all iterations at once, which stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

TEST(Maps, AScanWithoutStates) {
  for (const bool reverse : {false, true}) {
    TestGraph t({floats({9, 2, 12}), floats({9, 12}), floats({12, 5})}, 2);
    const auto body = t.begin_scan({}, {t.in(0), t.in(1)}, 2, reverse);
    auto* scaled = t->call("Mul", {body[0], body[1]});
    auto* y = t->call("Softmax", {t->call("MatMul", {scaled, t.in(2)})}, {Attribute::of("axis", -1)});
    if (reverse) {
      t.loop()->attributes.set(Attribute::of("scan_output_directions", std::vector<int64_t>{1, 1}));
    }
    const auto after = t.end_scan({y, t.in(2)});
    t->set_output(0, after[0]);
    t->set_output(1, after[1]);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("Mul", "MatMul", "Softmax", "Expand"));
    expect_same_as_reference(t, *planned);
  }
}

// A state that does not change, and rows that are picked by the counter.
TEST(Maps, ALoopOverItsCounter) {
  TestGraph t({floats({7, 3}), floats({3})}, 2);
  const auto body = t.begin_loop(t->constant_int64(7), {t.in(1)}, 1);
  auto* x = t->call("Gather", {t.in(0), body[0]});
  auto* iteration = t->call("Cast", {body[0]}, {Attribute::of("to", 1)});
  const auto after = t.end_loop({body[2], t->call("Add", {t->call("Mul", {x, iteration}), body[2]})});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("Scan")));
  EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("Loop")));
  expect_same_as_reference(t, *planned);
}

TEST(Maps, InsideOneAnother) {
  TestGraph t({floats({6, 5}), floats({4, 5})}, 1);
  const auto outer = t.begin_scan({}, {t.in(0)}, 1);
  TestGraph::Loop around = t.loop();
  const auto inner = t.begin_scan({}, {t.in(1)}, 1);
  auto* rows = t.end_scan({t->call("Mul", {inner[0], outer[0]})})[0];
  t.resume(around);
  t->set_output(0, t.end_scan({t->call("Tanh", {rows})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Mul Tanh"));
  expect_same_as_reference(t, *planned);
}

TEST(Maps, OthersStay) {
  TestGraph carries({floats({5}), floats({7, 5})}, 1);
  const auto body = carries.begin_scan({carries.in(0)}, {carries.in(1)}, 0);
  carries->set_output(0, carries.end_scan({carries->call("Add", {body[0], body[1]})})[0]);
  EXPECT_THAT(plan_of(carries)->listing(), testing::Contains("Scan"));

  TestGraph fails({int64s({7, 5}), int64s({5})}, 1);
  const auto divides = fails.begin_scan({}, {fails.in(0)}, 1);
  fails->set_output(0, fails.end_scan({fails->call("Div", {divides[0], fails.in(1)})})[0]);
  EXPECT_THAT(plan_of(fails)->listing(), testing::Contains("Scan"));

  TestGraph turns({floats({7, 5})}, 1);
  const auto turned = turns.begin_scan({}, {turns.in(0)}, 1, true);
  turns->set_output(0, turns.end_scan({turns->call("Exp", {turned[0]})})[0]);
  EXPECT_THAT(plan_of(turns)->listing(), testing::Contains("Scan"));
  expect_same_as_reference(turns, *plan_of(turns));
}

}  // namespace
}  // namespace treadle::testing_support
