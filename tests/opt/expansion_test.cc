// Nodes that become the simpler nodes that their operators define: with any number of operands, and in loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

const std::vector<std::pair<size_t, AnyValue>> kThreeIterations = {
    {0, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 3))}};

TEST(Expansion, ClipJoinsTheGroupsAroundIt) {
  TestGraph t({int64s({}), floats({7}), floats({})}, 2);
  auto* high = t->constant(Tensor::scalar<float>(ElementType::kFloat, 1.5f));
  const auto body = t.begin_loop(t.in(0), {t.in(1), t.in(1)});
  auto* both = t->call("Clip", {t->call("Add", {body[2], body[3]}), t.in(2), high});
  auto* below = t->call("Clip", {t->call("Sub", {body[2], body[3]}), nullptr, high});
  const auto after = t.end_loop({both, below});
  t->set_output(0, after[0]);
  t->set_output(1, after[1]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Loop", "fused Add Max Min", "fused Sub Max Min", "end"));
  expect_same_as_reference(t, *planned, kThreeIterations);
}

TEST(Expansion, ClipStaysOutsideOfLoops) {
  TestGraph t({floats({4}), floats({})}, 1);
  t->set_output(0, t->call("Clip", {t.in(0), t.in(1)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), testing::Not(testing::Contains(testing::HasSubstr("Max"))));
  expect_same_as_reference(t, *planned);
}

// Neither form rounds.
TEST(Expansion, ClipOfElementsThatAreConverted) {
  const Type halves = Type::tensor(ElementType::kFloat16, Shape{Dim(7)});
  TestGraph t({int64s({}), halves, Type::tensor(ElementType::kFloat16, Shape{})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  const auto after = t.end_loop({t->call("Clip", {t->call("Add", {body[2], t.in(1)}), t.in(2)})});
  t->set_output(0, after[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), testing::Contains(testing::HasSubstr("Max")));
  expect_same_as_reference(t, *planned, kThreeIterations);
}

// Small enough for every rounding to be that of the reference interpreter's kernel, up to a few units in the last
// place.
void expect_close_to_reference(TestGraph& t, const Planned& planned, const Tensor& x) {
  const kernels::ScopedIsa scope(Isa::kBaseline);
  const std::vector<AnyValue> inputs{kThreeIterations[0].second, AnyValue(x)};
  const auto expected = reference::run_graph(t.graph(), inputs);
  ASSERT_TRUE(expected.ok());
  std::vector<AnyValue> results(1);
  run::Context context(planned.program);
  ASSERT_TRUE(context.run(places_of(inputs), places_of(results), {}).ok());
  const Tensor &a = (*expected)[0].tensor(), &b = results[0].tensor();
  ASSERT_TRUE(a.dims() == b.dims());
  const auto *want = static_cast<const float*>(a.raw()), *have = static_cast<const float*>(b.raw());
  for (int64_t i = 0; i < a.element_count(); ++i) {
    if (std::isfinite(want[i])) {
      EXPECT_NEAR(have[i], want[i], 2e-6f) << i;
    } else {
      EXPECT_EQ(std::isnan(want[i]), std::isnan(have[i])) << i;
      if (!std::isnan(want[i])) {
        EXPECT_EQ(want[i], have[i]) << i;
      }
    }
  }
}

// A row with an infinite largest element is not shifted: infinity minus infinity is NaN.
TEST(Expansion, LogSumExpOfInfinities) {
  const float inf = std::numeric_limits<float>::infinity();
  TestGraph t({int64s({}), floats({3, 3})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  auto* sum = t->call("ReduceLogSumExp", {body[2], t->constant_int64s({1})}, {Attribute::of("keepdims", 1)});
  t->set_output(0, t.end_loop({t->call("Max", {t->call("Identity", {sum}), t.in(1)})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), testing::Contains(testing::HasSubstr("IsInf")));
  Tensor x = *Tensor::allocate(ElementType::kFloat, {3, 3});
  const float numbers[9] = {0.5f, inf, 1.f, -inf, -inf, -inf, 0.25f, -inf, -0.5f};
  std::copy(std::begin(numbers), std::end(numbers), static_cast<float*>(x.mutable_raw()));
  expect_close_to_reference(t, *planned, x);
}

TEST(Expansion, LogSumExpOfRowsAndColumns) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t axis : {0, 1, -1}) {
    for (const int64_t keep : {0, 1}) {
      TestGraph t({int64s({}), floats({4, 4})}, 1);
      const auto body = t.begin_loop(t.in(0), {t.in(1)});
      auto* sum = t->call("ReduceLogSumExp", {body[2], t->constant_int64s({axis})}, {Attribute::of("keepdims", keep)});
      if (keep == 0) sum = t->call("Unsqueeze", {sum, t->constant_int64s({axis})});
      t->set_output(0, t.end_loop({t->call("Add", {t->call("Mul", {body[2], t.in(1)}), sum})})[0]);
      const auto planned = plan_of(t);
      EXPECT_THAT(planned->listing(), testing::Contains("ReduceMax"));
      Tensor x = *Tensor::allocate(ElementType::kFloat, {4, 4});
      const float numbers[16] = {0.1f, 0.5f, -0.3f, 0.2f, -inf, -inf, -inf, -inf,
                                 0.f,  -inf, 0.3f,  0.1f, inf,  0.f,  1.f,  nan};
      std::copy(std::begin(numbers), std::end(numbers), static_cast<float*>(x.mutable_raw()));
      expect_close_to_reference(t, *planned, x);
    }
  }
}

TEST(Expansion, ClipOfAnyNumberOfDimensions) {
  TestGraph t({int64s({}), floats({2, 1, 3, 4})}, 1);
  auto* high = t->constant(Tensor::scalar<float>(ElementType::kFloat, 1.5f));
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  t->set_output(0, t.end_loop({t->call("Clip", {t->call("Add", {body[2], t.in(1)}), nullptr, high})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Loop", "fused Add Max Min", "end"));
  expect_same_as_reference(t, *planned, kThreeIterations);
}

// Known bounds become the convolution's, also behind a sum that it absorbs; it cannot take other bounds.
TEST(Expansion, ClipThatAConvolutionTakesInStays) {
  for (const bool with_sum : {false, true}) {
    for (const bool is_known : {false, true}) {
      TestGraph t({int64s({}), floats({1, 2, 8}), floats({2, 2, 3}), floats({})}, 1);
      auto* high = is_known ? t->constant(Tensor::scalar<float>(ElementType::kFloat, 1.5f)) : t.in(3);
      const auto body = t.begin_loop(t.in(0), {t.in(1)});
      auto* rows = t->call("Conv", {body[2], t.in(2)}, {Attribute::of("pads", std::vector<int64_t>{1, 1})});
      if (with_sum) rows = t->call("Add", {rows, body[2]});
      t->set_output(0, t.end_loop({t->call("Clip", {rows, nullptr, high})})[0]);
      const auto planned = plan_of(t);
      const std::string conv = with_sum || is_known ? "FusedConv" : "Conv";
      if (is_known) {
        EXPECT_THAT(planned->listing(), ElementsAre("Loop", conv, "end"));
      } else {
        EXPECT_THAT(planned->listing(), ElementsAre("Loop", conv, "fused Max Min", "end"));
      }
      expect_same_as_reference(t, *planned, kThreeIterations);
    }
  }
}

TEST(Expansion, ChainsJoinTheGroupsAroundThem) {
  TestGraph t({floats({3, 4}), floats({4}), floats({3, 1}), floats({})}, 1);
  auto* least = t->call("Min", {t.in(0), t.in(1), t.in(2), t.in(3)});
  auto* sum = t->call("Sum", {least, t.in(1), t.in(2)});
  t->set_output(0, t->call("Mean", {t->call("Abs", {sum}), least, t.in(3)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Min Min Min Sum Sum Abs Sum Sum Div"));
  expect_same_as_reference(t, *planned);
}

TEST(Expansion, PartsMayBeSmallerThanTheResult) {
  TestGraph t({floats({1, 4}), floats({4}), floats({3, 1})}, 1);
  t->set_output(0, t->call("Max", {t.in(0), t.in(1), t.in(2)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Max", "Max"));
  expect_same_as_reference(t, *planned);
}

TEST(Expansion, NarrowTypesAreFoldedWideByTheKernel) {
  const Type halves = Type::tensor(ElementType::kFloat16, Shape{Dim(5)});
  TestGraph t({halves, halves, halves}, 1);
  t->set_output(0, t->call("Sum", {t.in(0), t.in(1), t.in(2)}));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Sum"));
  expect_same_as_reference(t, *planned);
}

}  // namespace
}  // namespace treadle::testing_support
