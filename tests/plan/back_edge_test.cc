// The order of a back edge's steps.
#include "plan/back_edge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using testing::ElementsAre;

struct Recorder {
  std::vector<std::string> said;
  std::vector<uint32_t> slots;

  void note(const char* what, uint32_t slot) {
    said.emplace_back(what);
    slots.push_back(slot);
  }
  void ask(uint32_t continues) { note("ask", continues); }
  void put_row(const plan::LoopStep::Row& row) { note("row", row.from); }
  void exchange(const plan::LoopStep::Swap& swap) { note("swap", swap.in); }
  void advance(const plan::LoopStep::Advance& pointer) { note("advance", pointer.slot); }
  void count(uint32_t counter) { note("count", counter); }
};

// Rows are stored before the pointer to them advances, and before the states that they may equal are swapped.
TEST(BackEdge, OfALoopWithAConditionAStateAndRows) {
  TestGraph t({int64s({}), floats({1, 8}), floats({8, 8})}, 2);
  const auto body = t.begin_loop(t.in(0), {t.in(1)}, 1);
  auto* next = t->call("MatMul", {body[2], t.in(2)});
  auto* number = t->call("Cast", {body[0]}, {ir::Attribute::of("to", int64_t{1})});
  const auto results = t.end_loop({t->call("Add", {next, number}), next});
  t->set_output(0, results[0]);
  t->set_output(1, results[1]);
  const auto planned = plan_of(t, false);
  plan::Loop loop = planned->program->loops.at(0);
  loop.continues = 77;
  if (loop.step.rows.empty()) loop.step.rows.push_back({1, 2, 32});  // the row is written in place
  Recorder edge;
  plan::take_back_edge(loop, edge);
  EXPECT_THAT(edge.said, ElementsAre("ask", "row", "swap", "advance", "count"));
  EXPECT_EQ(edge.slots.front(), 77u);
  EXPECT_EQ(edge.slots.back(), loop.counter);
  loop.continues = plan::kNoSlot;
  Recorder unasked;
  plan::take_back_edge(loop, unasked);
  EXPECT_EQ(unasked.said.front(), edge.said[1]);
}

TEST(BackEdge, SwapsKnowTheSizeOfTheirState) {
  TestGraph t({int64s({}), floats({1, 8}), floats({8, 8})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  t->set_output(0, t.end_loop({t->call("MatMul", {body[2], t.in(2)})})[0]);
  const auto planned = plan_of(t);
  const plan::Loop& loop = planned->program->loops.at(0);
  ASSERT_EQ(loop.step.swaps.size(), 1u);
  EXPECT_EQ(loop.step.swaps[0].in, loop.states[0].in);
  EXPECT_EQ(loop.step.swaps[0].out, loop.states[0].out);
  EXPECT_EQ(loop.step.swaps[0].bytes, 32u);
}

}  // namespace
}  // namespace treadle::testing_support
