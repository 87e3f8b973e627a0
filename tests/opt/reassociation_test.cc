// Chains of one operation in loops: which operands are combined first, which leave the loop, and that no bit changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "op/loop_view.h"
#include "opt/passes.h"
#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using testing::ElementsAre;

// The number of nodes of the body between state `i` and its next value, on the longest path.
size_t steps_of_state(const ir::Node& loop, size_t i = 0) {
  const LoopView view(loop);
  std::unordered_map<const ir::Value*, size_t> steps{{view.state(i).before, 0}};
  for (const auto& node : view.body().nodes) {
    for (const ir::Value* v : node->inputs) {
      const auto found = steps.find(v);
      if (found == steps.end()) continue;
      size_t& behind = steps[node->outputs[0]];
      behind = std::max(behind, found->second + 1);
    }
  }
  return steps.at(view.state(i).after);
}

std::vector<std::string> ops_of(const ir::Region& region) {
  std::vector<std::string> ops;
  for (const auto& node : region.nodes) ops.push_back(node->op->name);
  return ops;
}

// Plans and runs the graph, then runs the pass alone: returns the number of chains that it regroups.
size_t regrouped(TestGraph& t, const std::vector<std::pair<size_t, AnyValue>>& given = {}) {
  expect_same_as_reference(t, *plan_of(t), given);
  opt::Remarks remarks;
  opt::reassociate(t.graph(), &remarks);
  EXPECT_TRUE(ir::verify(t.graph()).ok());
  size_t count = 0;
  for (const opt::Remark& entry : remarks.entries()) count += entry.change == opt::Change::kRegrouped ? 1 : 0;
  return count;
}

void finish(TestGraph& t, std::vector<ir::Value*> results) {
  const auto after = t.end_scan(std::move(results));
  for (size_t i = 0; i < after.size(); ++i) t->set_output(i, after[i]);
}

Tensor special_floats(const Dims& dims, int seed) {
  constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
  const float numbers[] = {0.0f, -0.0f, kNaN, 1.0f, -kNaN, -2.0f, std::numeric_limits<float>::infinity()};
  Tensor t = *Tensor::allocate(ElementType::kFloat, dims);
  for (int64_t i = 0; i < t.element_count(); ++i) t.mutable_data<float>()[i] = numbers[(i * 5 + seed * 3) % 7];
  return t;
}

// For any position of the state in it, a maximum of several sources waits for the state in one step, or in two if the
// state is between others: floats keep their order.
TEST(Reassociation, RunningMaximumOverSeveralSources) {
  for (size_t place = 0; place < 4; ++place) {
    SCOPED_TRACE(place);
    TestGraph t({floats({6}), floats({9, 6}), floats({9, 6}), floats({9, 6})}, 1);
    auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2), t.in(3)});
    std::rotate(body.begin(), body.begin() + 1, body.begin() + 1 + static_cast<std::ptrdiff_t>(place));
    ir::Value* greatest = body[0];
    for (size_t i = 1; i < 4; ++i) greatest = t->call("Max", {greatest, body[i]});
    finish(t, {greatest});
    std::vector<std::pair<size_t, AnyValue>> given{{0, special_floats({6}, 1)}};
    for (size_t i = 1; i < 4; ++i) given.emplace_back(i, special_floats({9, 6}, static_cast<int>(i) + 1));
    EXPECT_EQ(regrouped(t, given), place == 3 ? 0u : place == 2 ? 0u : 1u);
    EXPECT_EQ(steps_of_state(*t.loop()), place == 0 || place == 3 ? 1u : 2u);
  }
}

// Operands that are the same in every iteration are added before the loop, operands of the iteration before the state
// is ready.
TEST(Reassociation, IntegerCounter) {
  TestGraph t({int64s({}), int64s({12}), int64s({}), int64s({})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  auto* next = t->call("Add", {t->call("Add", {t.in(2), t->call("Add", {body[0], body[1]})}), t.in(3)});
  finish(t, {next});
  EXPECT_EQ(regrouped(t), 1u);
  EXPECT_EQ(steps_of_state(*t.loop()), 1u);
  EXPECT_THAT(ops_of(t.graph().top()), ElementsAre("Add", "Scan"));
  EXPECT_THAT(ops_of(*t.loop()->regions[0]), ElementsAre("Add", "Add"));
}

// Sums and products of integers wrap in any order; operands that multiply and operands that are combined by Xor are
// separate chains.
TEST(Reassociation, HashOfWords) {
  TestGraph t({int64s({4}), int64s({20, 4}), int64s({20, 4}), int64s({})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2)}, 1);
  auto* prime = t->constant(Tensor::scalar<int64_t>(ElementType::kInt64, 1099511628211));
  auto* spread = t->call("Mul", {t->call("Mul", {body[0], prime}), t.in(3)});
  auto* next = t->call("BitwiseXor", {t->call("BitwiseXor", {spread, body[1]}), body[2]});
  finish(t, {next, next});
  EXPECT_EQ(regrouped(t), 2u);
  EXPECT_EQ(steps_of_state(*t.loop()), 2u);
}

// An automaton of two bits: both states wait for themselves and for each other.
TEST(Reassociation, BooleanAutomaton) {
  TestGraph t({bools({3}), bools({3}), bools({8, 3}), bools({8, 3}), bools({8, 3})}, 2);
  const auto body = t.begin_scan({t.in(0), t.in(1)}, {t.in(2), t.in(3), t.in(4)});
  auto* open =
      t->call("And", {t->call("And", {t->call("And", {body[0], body[2]}), body[3]}), t->call("Not", {body[1]})});
  auto* locked = t->call("Xor", {t->call("Or", {t->call("Or", {body[1], body[3]}), body[4]}), body[0]});
  finish(t, {open, locked});
  EXPECT_EQ(regrouped(t), 2u);
  EXPECT_EQ(steps_of_state(*t.loop(), 0), 2u);
  EXPECT_EQ(steps_of_state(*t.loop(), 1), 2u);
}

// A Loop with a state without readers.
TEST(Reassociation, StateThatHandsOnWhatStandsOutside) {
  TestGraph t({int64s({}), int64s({2}), int64s({2}), int64s({2})}, 2);
  const auto body = t.begin_loop(t.in(0), {t.in(1), t.in(2)});
  auto* next = t->call("Max", {t->call("Max", {body[2], body[3]}), t->call("Mul", {body[0], t.in(3)})});
  const auto after = t.end_loop({next, t.in(3)});
  for (size_t i = 0; i < 2; ++i) t->set_output(i, after[i]);
  EXPECT_EQ(regrouped(t, {{0, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 7))}}), 1u);
  EXPECT_EQ(steps_of_state(*t.loop()), 1u);
}

TEST(Reassociation, SumsOfFloatsStay) {
  TestGraph t({floats({4}), floats({9, 4}), floats({4})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
  finish(t, {t->call("Add", {t->call("Add", {body[0], body[1]}), t.in(2)})});
  EXPECT_EQ(regrouped(t), 0u);
  EXPECT_EQ(steps_of_state(*t.loop()), 2u);
}

// Before opset 7, only the second operand was broadcast.
TEST(Reassociation, OldVersionsStay) {
  TestGraph t({int64s({2, 3}), int64s({9, 3}), int64s({9, 3})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2)});
  auto* next = t->call("Add", {t->call("Add", {body[0], body[1]}), body[2]});
  for (ir::Node* node : {next->producer, next->producer->inputs[0]->producer}) {
    become(*node, *node->op, *node->op->version_for(6), {});
    node->attributes.set(ir::Attribute::of("broadcast", 1));
  }
  finish(t, {next});
  EXPECT_EQ(regrouped(t), 0u);
}

// A value with another reader is needed as it is.
TEST(Reassociation, LinksThatAreReadElsewhereStay) {
  TestGraph t({int64s({4}), int64s({9, 4}), int64s({9, 4})}, 2);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2)}, 1);
  auto* link = t->call("Add", {body[0], body[1]});
  finish(t, {t->call("Add", {link, body[2]}), link});
  EXPECT_EQ(regrouped(t), 0u);
}

// An operation on one element would become one on sixty-four.
TEST(Reassociation, NoMoreElementsThanBefore) {
  TestGraph t({int64s({1}), int64s({9, 1}), int64s({9, 64})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2)});
  auto* wide = t->call("Add", {t->call("Add", {body[0], body[1]}), body[2]});
  finish(t, {t->call("ReduceMax", {wide, t->constant_int64s({0})})});
  EXPECT_EQ(regrouped(t), 0u);
}

// Scalars are combined before they are combined with a row.
TEST(Reassociation, OperandsOfSeveralSizes) {
  TestGraph t({int64s({2, 5}), int64s({9, 5}), int64s({9}), int64s({9, 2, 1})}, 1);
  const auto body = t.begin_scan({t.in(0)}, {t.in(1), t.in(2), t.in(3)});
  auto* next = t->call("Mul", {t->call("Mul", {t->call("Mul", {body[0], body[1]}), body[2]}), body[3]});
  finish(t, {next});
  EXPECT_EQ(regrouped(t), 1u);
  EXPECT_EQ(steps_of_state(*t.loop()), 1u);
}

// Long chains, in the order of a list and the other way round.
TEST(Reassociation, LongChains) {
  for (const bool from_the_right : {false, true}) {
    TestGraph t({int64s({3}), int64s({5, 3})}, 1);
    const auto body = t.begin_scan({t.in(0)}, {t.in(1)});
    ir::Value* sum = body[0];
    for (int i = 0; i < 300; ++i) {
      auto* term = t->call("Mul", {body[1], t->constant_int64s({i})});
      sum = from_the_right ? t->call("Add", {term, sum}) : t->call("Add", {sum, term});
    }
    finish(t, {sum});
    EXPECT_EQ(regrouped(t), 1u);
    EXPECT_EQ(steps_of_state(*t.loop()), 1u);
  }
}

}  // namespace
}  // namespace treadle::testing_support
