// Lists to which a loop appends: which become scan outputs, and how the nodes behind the loop use them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

// Picks rows [2, 3] of [iterations, 2, 3], appends twice each to a list, and joins it.
void write_list(TestGraph& t, ir::Value* iterations, int64_t axis, int64_t new_axis, bool at_front = false) {
  auto* empty = t->call("SequenceEmpty", {}, {Attribute::of("dtype", 1)});
  empty->type = Type::sequence(Type::tensor(ElementType::kFloat));
  const auto body = t.begin_loop(iterations, {empty});
  auto* x = t->call("Gather", {t.in(0), body[0]});
  auto* twice = t->call("Add", {x, x});
  auto* longer = at_front ? t->call("SequenceInsert", {body[2], twice, t->constant_int64(0)})
                          : t->call("SequenceInsert", {body[2], twice});
  auto* list = t.end_loop({longer})[0];
  const std::vector<Attribute> how{Attribute::of("axis", axis), Attribute::of("new_axis", new_axis)};
  t->set_output(0, t->call("ConcatFromSequence", {list}, how));
}

TEST(LoopLists, JoinedAtOnceTheyAreTheRows) {
  for (const auto& [axis, new_axis] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 1}, {1, 1}, {-1, 1}, {2, 1}, {0, 0}, {1, 0}, {-1, 0}, {-2, 0}}) {
    TestGraph t({floats({5, 2, 3})}, 1);
    write_list(t, t->constant_int64(5), axis, new_axis);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("SequenceInsert"))) << axis << " " << new_axis;
    EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("ConcatFromSequence"))) << axis << " " << new_axis;
    expect_same_as_reference(t, *planned);
  }
}

// The list may be empty; that is still an error of ConcatFromSequence.
TEST(LoopLists, OfIterationsThatAreASymbolTheyAreCut) {
  TestGraph t({floats({Dim::symbol("T"), 2, 3})}, 1);
  auto* size = t->call("Shape", {t.in(0)}, {Attribute::of("start", 0), Attribute::of("end", 1)});
  write_list(t, t->call("Squeeze", {size}), 0, 1);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Add", "SplitToSequence", "ConcatFromSequence"));
  std::mt19937 engine(3);
  for (const int64_t iterations : {1, 4}) {
    expect_same_as_reference(t, *planned, {{0, random_value(floats({iterations, 2, 3}), engine)}});
  }
}

// Picks rows [2, 3] of [iterations, 2, 3], and appends each twice along an axis.
void write_growing(TestGraph& t, ir::Value* iterations, int64_t axis, int64_t begin = 0, bool at_front = false) {
  Dims dims{2, 3};
  dims[static_cast<size_t>(axis < 0 ? axis + 2 : axis)] = begin;
  Tensor empty = *Tensor::allocate(ElementType::kFloat, dims);
  std::fill_n(empty.mutable_data<float>(), empty.element_count(), 7.0f);
  const auto body = t.begin_loop(iterations, {t->constant(std::move(empty))});
  body[2]->type = Type::tensor(ElementType::kFloat);
  auto* x = t->call("Gather", {t.in(0), body[0]});
  auto* twice = t->call("Add", {x, x});
  const std::vector<ir::Value*> parts = at_front ? std::vector{twice, body[2]} : std::vector{body[2], twice};
  auto* longer = t->call("Concat", parts, {Attribute::of("axis", axis)});
  t->set_output(0, t.end_loop({longer})[0]);
}

TEST(LoopLists, TensorsThatGrowFromNothingAreRowsSideBySide) {
  for (const int64_t axis : {0, 1, -1, -2}) {
    TestGraph t({floats({5, 2, 3})}, 1);
    write_growing(t, t->constant_int64(5), axis);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("Concat"))) << axis;
    EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("Loop"))) << axis;
    expect_same_as_reference(t, *planned);
  }
}

TEST(LoopLists, TensorsGrowOverAnyNumberOfIterations) {
  for (const int64_t axis : {0, 1}) {
    TestGraph t({floats({Dim::symbol("T"), 2, 3})}, 1);
    auto* size = t->call("Shape", {t.in(0)}, {Attribute::of("start", 0), Attribute::of("end", 1)});
    write_growing(t, t->call("Squeeze", {size}), axis);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("Concat"))) << axis;
    std::mt19937 engine(3);
    for (const int64_t iterations : {0, 1, 4}) {
      expect_same_as_reference(t, *planned, {{0, random_value(floats({iterations, 2, 3}), engine)}});
    }
  }
}

// A loop that may end at any iteration stays a loop, and its body has known sizes.
TEST(LoopLists, TensorsGrowWhereIterationsAreNotKnown) {
  for (const int64_t axis : {0, 1}) {
    TestGraph t({floats({5, 2, 3}), int64s({})}, 1);
    write_growing(t, t.in(1), axis);
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), testing::Not(testing::Contains("Concat"))) << axis;
    for (const int64_t iterations : {0, 1, 5}) {
      expect_same_as_reference(t, *planned, {{1, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, iterations))}});
    }
  }
}

TEST(LoopLists, OtherTensorsStay) {
  TestGraph front({floats({5, 2, 3})}, 1);
  write_growing(front, front->constant_int64(5), 1, 0, true);
  TestGraph begun({floats({5, 2, 3})}, 1);
  write_growing(begun, begun->constant_int64(5), 1, 2);
  for (TestGraph* t : {&front, &begun}) {
    const auto planned = plan_of(*t);
    EXPECT_THAT(planned->listing(), testing::Contains("Concat"));
    expect_same_as_reference(*t, *planned);
  }
}

TEST(LoopLists, OthersStay) {
  TestGraph front({floats({5, 2, 3})}, 1);
  write_list(front, front->constant_int64(5), 0, 1, true);
  EXPECT_THAT(plan_of(front)->listing(), testing::Contains("SequenceInsert"));
  expect_same_as_reference(front, *plan_of(front));

  TestGraph counted({floats({5, 2, 3}), int64s({})}, 1);
  write_list(counted, counted.in(1), 0, 1);
  EXPECT_THAT(plan_of(counted)->listing(), testing::Contains("SequenceInsert"));
}

}  // namespace
}  // namespace treadle::testing_support
