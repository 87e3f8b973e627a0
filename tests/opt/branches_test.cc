// An If that becomes a choice between the results of both branches, and Ifs that must stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using ir::Attribute;
using testing::ElementsAre;

AnyValue number(int64_t n) {
  return AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, n));
}

AnyValue truth(bool b) {
  return AnyValue(Tensor::scalar<bool>(ElementType::kBool, b));
}

AnyValue one_truth(bool b) {
  Tensor t = *Tensor::allocate(ElementType::kBool, {1});
  *static_cast<bool*>(t.mutable_raw()) = b;
  return AnyValue(std::move(t));
}

using Branch = std::function<ir::Value*()>;

ir::Value* choose(TestGraph& t, ir::Value* condition, const Branch& yes, const Branch& no) {
  ir::Node* choice = t->node("If", std::vector{condition}, 1);
  t->begin_region(choice, "then_branch");
  t->region_output(yes());
  t->end_region();
  t->begin_region(choice, "else_branch");
  t->region_output(no());
  t->end_region();
  return choice->outputs[0];
}

TEST(Branches, ACheapOneBecomesASelectAndJoinsTheGroup) {
  TestGraph t({int64s({}), int64s({})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  auto* two = t->constant(Tensor::scalar<int64_t>(ElementType::kInt64, 2));
  auto* odd =
      t->call("Equal", {t->call("Mod", {body[2], two}), t->constant(Tensor::scalar<int64_t>(ElementType::kInt64, 1))});
  auto* next =
      choose(t, odd, [&] { return t->call("Mul", {body[2], two}); }, [&] { return t->call("Div", {body[2], two}); });
  t->set_output(0, t.end_loop({t->call("Add", {next, body[0]})})[0]);
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("Loop", "fused Mod Equal Mul Div Where Add", "end"));
  for (const int64_t iterations : {0, 1, 2, 9})
    expect_same_as_reference(t, *planned, {{0, number(iterations)}, {1, number(27)}});
}

TEST(Branches, InsideBranchesAndWithoutNodes) {
  TestGraph t({bools({}), bools({1}), floats({3})}, 2);
  auto* inner = choose(
      t, t.in(0),
      [&] { return choose(t, t.in(1), [&] { return t->call("Neg", {t.in(2)}); }, [&] { return t.in(2); }); },
      [&] { return t->call("Abs", {t.in(2)}); });
  t->set_output(0, inner);
  t->set_output(1, choose(t, t.in(0), [&] { return t.in(2); }, [&] { return t.in(2); }));
  const auto planned = plan_of(t);
  EXPECT_THAT(planned->listing(), ElementsAre("fused Neg Where Abs Where"));
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      expect_same_as_reference(t, *planned, {{0, truth(a)}, {1, one_truth(b)}});
    }
  }
}

// Each for another reason: it can fail, is random or costly, or results differ in size.
TEST(Branches, OthersStay) {
  TestGraph t({bools({}), int64s({}), floats({4}), floats({4, 4}), int64s({})}, 5);
  t->set_output(0, choose(t, t.in(0), [&] { return t->call("Div", {t.in(1), t.in(4)}); }, [&] { return t.in(1); }));
  t->set_output(1, choose(t, t.in(0), [&] { return t->call("RandomNormalLike", {t.in(2)}); }, [&] { return t.in(2); }));
  t->set_output(2, choose(t, t.in(0), [&] { return t->call("Tan", {t.in(2)}); }, [&] { return t.in(2); }));
  t->set_output(3, choose(t, t.in(0), [&] { return t->call("MatMul", {t.in(3), t.in(3)}); }, [&] { return t.in(3); }));
  t->set_output(
      4, choose(t, t.in(0), [&] { return t->call("Abs", {t.in(2)}); }, [&] { return t->call("Abs", {t.in(3)}); }));
  EXPECT_THAT(plan_of(t)->listing(), testing::Not(testing::Contains("Where")));
}

TEST(Branches, ADivisionThatIsNotTakenDoesNotFail) {
  TestGraph t({bools({}), int64s({}), int64s({})}, 1);
  t->set_output(0, choose(
                       t, t.in(0), [&] { return t->call("Div", {t.in(1), t.in(2)}); },
                       [&] { return t->call("Neg", {t.in(1)}); }));
  const auto planned = plan_of(t);
  expect_same_as_reference(t, *planned, {{0, truth(false)}, {1, number(5)}, {2, number(0)}});
  expect_same_as_reference(t, *planned, {{0, truth(true)}, {1, number(5)}, {2, number(2)}});
}

}  // namespace
}  // namespace treadle::testing_support
