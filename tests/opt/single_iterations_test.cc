// Scans over one step, which need no loop, and those that stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using testing::ElementsAre;

TEST(SingleIterations, TheBodyTakesTheLoopsPlace) {
  for (const bool reverse : {false, true}) {
    TestGraph t({floats({2, 16}), floats({1, 2, 16}), floats({16, 16})}, 3);
    const auto body = t.begin_scan({t.in(0)}, {t.in(1)}, 2, reverse);
    auto* next = t->call("Tanh", {t->call("Add", {body[1], t->call("MatMul", {body[0], t.in(2)})})});
    const auto after = t.end_scan({next, next, body[0]});
    for (size_t i = 0; i < 3; ++i) t->set_output(i, after[i]);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("MatMul", "fused Add Tanh Unsqueeze"));
    expect_same_as_reference(t, *planned);
  }
}

TEST(SingleIterations, StatesThatAreHandedThrough) {
  TestGraph t({floats({4}), floats({4}), floats({1, 4})}, 3);
  const auto body = t.begin_scan({t.in(0), t.in(1)}, {t.in(2)}, 1);
  const auto after = t.end_scan({body[1], body[0], body[2]});
  for (size_t i = 0; i < 3; ++i) t->set_output(i, after[i]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre());
  expect_same_as_reference(t, *planned);
}

TEST(SingleIterations, MoreStepsAndWhatCanFailStay) {
  TestGraph two({floats({4}), floats({2, 4})}, 1);
  auto body = two.begin_scan({two.in(0)}, {two.in(1)});
  two->set_output(0, two.end_scan({two->call("Add", {body[0], body[1]})})[0]);
  EXPECT_THAT(plan_of(two)->listing(), testing::Contains("Scan"));

  TestGraph division({int64s({4}), int64s({1, 4})}, 1);
  body = division.begin_scan({division.in(0)}, {division.in(1)});
  division->set_output(0, division.end_scan({division->call("Div", {body[0], body[1]})})[0]);
  EXPECT_THAT(plan_of(division)->listing(), testing::Contains("Scan"));
}

}  // namespace
}  // namespace treadle::testing_support
