// Gather of one index: a pointer into the data, not a copy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::HasSubstr;

size_t rows(const Planned& planned) {
  return planned.program->rows.size();
}

AnyValue number(int64_t n) {
  return AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, n));
}

TEST(Rows, OfTheOutermostAxis) {
  TestGraph t({floats({5, 3, 4}), int64s({}), floats({1, 5, 6}), int64s({1, 1})}, 2);
  t->set_output(0, t->call("Tanh", {t->call("Gather", {t.in(0), t.in(1)})}));
  t->set_output(1, t->call("Tanh", {t->call("Gather", {t.in(2), t.in(3)}, {Attribute::of("axis", -2)})}));
  const auto planned = plan_of(t);
  EXPECT_EQ(rows(*planned), 2u);
  for (const int64_t i : {0, 4, -1, -5}) {
    expect_same_as_reference(t, *planned, {{1, number(i)}, {3, AnyValue(number(i).tensor().reshaped({1, 1}))}});
  }
}

TEST(Rows, NotOfInnerAxesOrSeveral) {
  TestGraph t({floats({5, 3}), int64s({}), int64s({2})}, 2);
  t->set_output(0, t->call("Gather", {t.in(0), t.in(1)}, {Attribute::of("axis", 1)}));
  t->set_output(1, t->call("Gather", {t.in(0), t.in(2)}));
  EXPECT_EQ(rows(*plan_of(t)), 0u);
}

TEST(Rows, AsOutputsAndStatesAreCopied) {
  TestGraph t({int64s({}), floats({6, 4})}, 3);
  auto* first = t->call("Gather", {t.in(1), t->constant_int64(2)});
  const auto body = t.begin_loop(t.in(0), {first}, 1);
  auto* row = t->call("Gather", {t.in(1), body[0]});
  const auto after = t.end_loop({row, row});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  t->set_output(2, first);
  const auto planned = plan_of(t);
  EXPECT_EQ(rows(*planned), 2u);
  for (const int64_t iterations : {0, 1, 6}) expect_same_as_reference(t, *planned, {{0, number(iterations)}});
}

// The data is a result whose memory would be free after the last node that names it.
TEST(Rows, KeepTheirDataAlive) {
  TestGraph t({int64s({}), floats({6, 16, 16})}, 1);
  auto* data = t->call("Softmax", {t.in(1)});
  auto* row = t->call("Gather", {data, t->constant_int64(3)});
  auto* inner = t->call("Gather", {row, t->constant_int64(1)});
  auto* other = t.in(1);
  for (int i = 0; i < 3; ++i) other = t->call("MatMul", {other, t.in(1)});
  const auto body = t.begin_loop(t.in(0), {other});
  t->set_output(0, t.end_loop({t->call("MatMul", {body[2], t->call("Add", {row, inner})})})[0]);
  const auto planned = plan_of(t);
  EXPECT_EQ(rows(*planned), 2u);
  expect_same_as_reference(t, *planned, {{0, number(3)}});
}

TEST(Rows, NameTheNodeAndTheIterationThatGoTooFar) {
  TestGraph t({int64s({}), floats({6, 4})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  auto* row = t->call("Gather", {t.in(1), body[0]});
  t->set_output(0, t.end_loop({t->call("MatMul", {t->call("Add", {body[2], row}),
                                                  t->constant(*Tensor::allocate(ElementType::kFloat, {4, 4}))})})[0]);
  const auto planned = plan_of(t);
  std::mt19937 engine(1);
  const std::vector<AnyValue> inputs{number(9), random_value(t.types()[1], engine)};
  std::vector<AnyValue> results(1);
  run::Context context(planned->program);
  const Status status = context.run(places_of(inputs), places_of(results), {});
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.to_string(), HasSubstr("body, iteration 6: index 6"));
}

}  // namespace
}  // namespace treadle::testing_support
