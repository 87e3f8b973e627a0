// Max, Min, Sum and Mean of more than two operands as chains of two at a time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using testing::ElementsAre;

TEST(Variadic, ChainsJoinTheGroupsAroundThem) {
  TestGraph t({floats({3, 4}), floats({4}), floats({3, 1}), floats({})}, 1);
  auto* least = t->call("Min", {t.in(0), t.in(1), t.in(2), t.in(3)});
  auto* sum = t->call("Sum", {least, t.in(1), t.in(2)});
  t->set_output(0, t->call("Mean", {t->call("Abs", {sum}), least, t.in(3)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Min Min Min Sum Sum Abs Sum Sum Div"));
  expect_same_as_judge(t, *planned);
}

TEST(Variadic, PartsMayBeSmallerThanTheResult) {
  TestGraph t({floats({1, 4}), floats({4}), floats({3, 1})}, 1);
  t->set_output(0, t->call("Max", {t.in(0), t.in(1), t.in(2)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Max", "Max"));
  expect_same_as_judge(t, *planned);
}

TEST(Variadic, NarrowTypesAreFoldedWideByTheKernel) {
  const Type halves = Type::tensor(ElementType::kFloat16, Shape{Dim(5)});
  TestGraph t({halves, halves, halves}, 1);
  t->set_output(0, t->call("Sum", {t.in(0), t.in(1), t.in(2)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Sum"));
  expect_same_as_judge(t, *planned);
}

}  // namespace
}  // namespace treadle::testing_support
