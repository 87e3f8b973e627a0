// States that pick rows of themselves and grow: which loops do both at once, and that results do not change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::Contains;
using testing::ElementsAre;
using testing::Not;

AnyValue iterations(int64_t n) {
  return AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, n));
}
AnyValue numbers(const std::vector<int64_t>& list) {
  return AnyValue(Tensor::of_int64(list));
}

constexpr size_t kState = 0, kRows = 1, kIterations = 2, kNew = 3;

// The loop of `t` begins, with its state of unknown size along `axis`.
ir::Value* begin(TestGraph& t, size_t axis, size_t scan_outputs = 0) {
  const auto body = t.begin_loop(t.in(kIterations), {t.in(kState)}, scan_outputs);
  body[2]->type.shape[axis] = Dim::unknown();
  return body[2];
}

ir::Value* pick(TestGraph& t, ir::Value* state, int64_t axis) {
  return t->call("Gather", {state, t.in(kRows)}, {Attribute::of("axis", axis)});
}

// As beam searches pass on keys, whose product reads the grown axis as columns, and values.
TEST(PickedAppends, KeysAndValues) {
  for (const std::vector<int64_t>& rows : {std::vector<int64_t>{0, 1, 2}, {2, 0, 1}, {1, 1, -1}, {0, 2, 1}}) {
    for (const bool columns : {false, true}) {
      TestGraph t({floats({3, 2, 1, 4}), int64s({3}), int64s({}), floats({3, 2, 1, 4})}, 2);
      auto* picked = pick(t, begin(t, 2, 1), 0);
      auto* grown = t->call("Concat", {picked, t.in(kNew)}, {Attribute::of("axis", 2)});
      auto* turned =
          columns ? t->call("Transpose", {grown}, {Attribute::of("perm", std::vector<int64_t>{0, 1, 3, 2})}) : grown;
      auto* product =
          columns ? t->call("MatMul", {t.in(kNew), turned})
                  : t->call("MatMul",
                            {t->call("ReduceSum", {grown, t->constant_int64s({3})}, {Attribute::of("keepdims", 1)}),
                             t.in(kNew)});
      auto* row = t->call("ReduceSum", {product, t->constant_int64s({2, 3})});
      const auto after = t.end_loop({grown, row});
      t->set_output(0, after[0]);
      t->set_output(1, after[1]);
      t.loop()->region("body")->output_types[2] = floats({3, 2, 1, 1});
      const auto planned = plan_of(t);
      EXPECT_THAT(planned->listing(), Contains("PickedConcat"));
      EXPECT_THAT(planned->listing(), Not(Contains("Gather")));
      for (const int64_t n : {0, 1, 2, 9, 40}) {
        expect_same_as_reference(t, *planned, {{kRows, numbers(rows)}, {kIterations, iterations(n)}});
      }
    }
  }
}

// The picked rows are along an axis behind the one that grows; their number shrinks or grows.
TEST(PickedAppends, OtherAxesAndNumbersOfRows) {
  TestGraph t({floats({2, 4}), int64s({4}), int64s({}), floats({1, 4})}, 1);
  auto* grown = t->call("Concat", {pick(t, begin(t, 0), 1), t.in(kNew), t.in(kNew)}, {Attribute::of("axis", -2)});
  t->set_output(0, t.end_loop({grown})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Loop", "PickedConcat", "end"));
  for (const int64_t n : {0, 1, 7}) {
    expect_same_as_reference(t, *planned, {{kRows, numbers({3, 0, 0, 1})}, {kIterations, iterations(n)}});
  }
}

TEST(PickedAppends, RowsThatAreNotThereAreAnError) {
  TestGraph t({floats({3, 1}), int64s({3}), int64s({}), floats({3, 1})}, 1);
  t->set_output(0,
                t.end_loop({t->call("Concat", {pick(t, begin(t, 1), 0), t.in(kNew)}, {Attribute::of("axis", 1)})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), Contains("PickedConcat"));
  run::Context context(planned->program);
  std::mt19937 engine(7);
  const std::vector<AnyValue> inputs{random_value(t.types()[0], engine), numbers({0, 3, 1}), iterations(2),
                                     random_value(t.types()[3], engine)};
  std::vector<AnyValue> results(1);
  const Status status = context.run(places_of(inputs), places_of(results), {});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.to_string(), testing::HasSubstr("index 3 is out of range, expected -3 to 2"));
}

// Another node reads the state before its rows move, or the picked rows.
TEST(PickedAppends, WhatIsReadElsewhereStays) {
  for (const bool of_state : {true, false}) {
    TestGraph t({floats({3, 1}), int64s({3}), int64s({}), floats({3, 1})}, 2);
    auto* state = begin(t, 1, 1);
    auto* picked = pick(t, state, 0);
    auto* grown = t->call("Concat", {picked, t.in(kNew)}, {Attribute::of("axis", 1)});
    const auto after = t.end_loop({grown, t->call("ReduceSum", {of_state ? state : picked, t->constant_int64s({1})})});
    t->set_output(0, after[0]);
    t->set_output(1, after[1]);
    t.loop()->region("body")->output_types[2] = floats({3, 1});
    const auto planned = plan_of(t);
    EXPECT_THAT(planned->listing(), Not(Contains("PickedConcat")));
    for (const int64_t n : {0, 3}) {
      expect_same_as_reference(t, *planned, {{kRows, numbers({2, 2, 0})}, {kIterations, iterations(n)}});
    }
  }
}

// Along the axis that grows: positions, not rows.
TEST(PickedAppends, PicksAlongTheGrownAxisStay) {
  TestGraph t({floats({3, 1}), int64s({3}), int64s({}), floats({2, 1})}, 1);
  t->set_output(0,
                t.end_loop({t->call("Concat", {pick(t, begin(t, 0), 0), t.in(kNew)}, {Attribute::of("axis", 0)})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), Not(Contains("PickedConcat")));
  for (const int64_t n : {0, 3}) {
    expect_same_as_reference(t, *planned, {{kRows, numbers({2, 2, 0})}, {kIterations, iterations(n)}});
  }
}

}  // namespace
}  // namespace treadle::testing_support
