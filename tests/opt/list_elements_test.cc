// Loops over lists: which read the tensor from which a list was cut or joined, and which stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::AnyOf;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

ir::Value* empty_list(TestGraph& t) {
  auto* empty = t->call("SequenceEmpty", {}, {Attribute::of("dtype", 1)});
  empty->type = Type::sequence(Type::tensor(ElementType::kFloat));
  return empty;
}

// The loop that SequenceMap becomes: a list of the doubles of a list's elements, from element `offset` on.
ir::Value* doubled(TestGraph& t, ir::Value* list, ir::Value* iterations = nullptr, int64_t offset = 0) {
  const auto body = t.begin_loop(iterations ? iterations : t->call("SequenceLength", {list}), {empty_list(t)});
  auto* at = offset == 0 ? body[0] : t->call("Add", {body[0], t->constant_int64(offset)});
  auto* x = t->call("SequenceAt", {list, at});
  return t.end_loop({t->call("SequenceInsert", {body[2], t->call("Add", {x, x})})})[0];
}

void join(TestGraph& t, ir::Value* list, size_t output = 0) {
  t->set_output(output,
                t->call("ConcatFromSequence", {list}, {Attribute::of("axis", 0), Attribute::of("new_axis", 1)}));
}

TEST(ListElements, OfATensorThatIsCutAreReadFromIt) {
  for (const int64_t axis : {0, 1, -1}) {
    TestGraph t({floats({5, 6, 4})}, 1);
    join(t, doubled(
                t, t->call("SplitToSequence", {t.in(0)}, {Attribute::of("axis", axis), Attribute::of("keepdims", 0)})));
    const auto planned = plan_of(t);
    EXPECT_EQ(planned->listing().back(), "Add") << axis;
    EXPECT_THAT(planned->listing(), Not(Contains(AnyOf("Loop", "Scan", "SplitToSequence", "SequenceAt")))) << axis;
    expect_same_as_reference(t, *planned);
  }
}

TEST(ListElements, MayKeepTheAxisAndBeLongerThanOne) {
  for (const int64_t length : {0, 1, 2, 3}) {
    TestGraph t({floats({12, 4})}, 1);
    join(t, doubled(t, length == 0 ? t->call("SplitToSequence", {t.in(0)})
                                   : t->call("SplitToSequence", {t.in(0), t->constant_int64(length)})));
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), ElementsAre("Add")) << length;
    expect_same_as_reference(t, *planned);
  }
}

TEST(ListElements, OfOneShapeAreStacked) {
  TestGraph t({floats({3, 4}), floats({3, 4}), floats({})}, 1);
  auto* third = t->call("Mul", {t.in(0), t.in(2)});
  auto* list = t->call("SequenceConstruct", {t.in(0), t.in(1), third});
  for (int i = 0; i < 2; ++i) list = t->call("SequenceInsert", {list, t.in(1)});
  join(t, doubled(t, list));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Mul", "Concat", "Add"));
  expect_same_as_reference(t, *planned);
}

TEST(ListElements, AListThatALoopMakesIsReadByTheNext) {
  TestGraph t({floats({5, 4})}, 2);
  auto* once = doubled(t, t->call("SplitToSequence", {t.in(0)}, {Attribute::of("keepdims", 0)}));
  join(t, once, 1);
  join(t, doubled(t, once));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Add Add"));
  expect_same_as_reference(t, *planned);
}

TEST(ListElements, OfIterationsThatAreASymbol) {
  TestGraph t({floats({Dim::symbol("T"), 4})}, 1);
  auto* list = t->call("SplitToSequence", {t.in(0)}, {Attribute::of("keepdims", 0)});
  t->set_output(0, t->call("SequenceLength", {doubled(t, list)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), Not(Contains(AnyOf("Loop", "SequenceAt", "SplitToSequence"))));
  std::mt19937 engine(3);
  for (const int64_t iterations : {0, 1, 4}) {
    expect_same_as_reference(t, *planned, {{0, random_value(floats({iterations, 4}), engine)}});
  }
}

TEST(ListElements, ByTheCounterOfAnOuterLoopAndAtConstantPositions) {
  TestGraph t({floats({4}), floats({5, 4}), floats({4})}, 1);
  auto* rows = t->call("SplitToSequence", {t.in(1)}, {Attribute::of("keepdims", 0)});
  auto* pair = t->call("SequenceConstruct", {t.in(0), t.in(2)});
  const auto outer = t.begin_loop(t->constant_int64(5), {t.in(0)});
  TestGraph::Loop around = t.loop();
  const auto inner = t.begin_loop(t->constant_int64(3), {outer[2]});
  auto* both =
      t->call("Mul", {t->call("SequenceAt", {rows, outer[0]}), t->call("SequenceAt", {pair, t->constant_int64(-1)})});
  const auto inside = t.end_loop({t->call("Sub", {both, inner[2]})});
  t.resume(around);
  t->set_output(0, t.end_loop({inside[0]})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Scan", "Loop", "fused Mul Sub", "end", "end"));
  expect_same_as_reference(t, *planned);
}

// Elements of several shapes, lists from outside, positions that could be beyond the end, parts of different sizes.
TEST(ListElements, OthersStay) {
  {
    TestGraph t({floats({3}), floats({1})}, 1);
    auto* sum = doubled(t, t->call("SequenceConstruct", {t.in(0), t.in(1), t.in(0)}));
    t->set_output(0, t->call("ConcatFromSequence", {sum}, {Attribute::of("axis", 0)}));
    EXPECT_THAT(plan_of(t)->listing(), Contains("SequenceAt"));
    expect_same_as_reference(t, *plan_of(t));
  }
  for (const auto& [iterations, offset] : {std::pair{2, 0}, {3, 2}}) {
    TestGraph t({floats({5, 4})}, 1);
    auto* list = t->call("SplitToSequence", {t.in(0), t->constant_int64(2)});
    auto* sum = doubled(t, list, t->constant_int64(iterations), offset);
    t->set_output(0, t->call("ConcatFromSequence", {sum}, {Attribute::of("axis", 0)}));
    EXPECT_THAT(plan_of(t)->listing(), Contains("SequenceAt"));
    if (offset == 0) expect_same_as_reference(t, *plan_of(t));
  }
  TestGraph t({floats({5, 4}), int64s({})}, 1);
  auto* list = t->call("SplitToSequence", {t.in(0)}, {Attribute::of("keepdims", 0)});
  join(t, doubled(t, list, t.in(1)));
  EXPECT_THAT(plan_of(t)->listing(), Contains("SequenceAt"));
}

}  // namespace
}  // namespace treadle::testing_support
