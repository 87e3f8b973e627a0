#include "op/loop_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle {
namespace {

using testing::ElementsAre;
using testing_support::floats;
using testing_support::int64s;
using testing_support::TestGraph;

// Loop(M, true, a, b; i, c, s0, s1: s0 + s1, s1, rows of s0 + s1) over a captured value.
struct LoopOfTwoStates {
  LoopOfTwoStates() : t({int64s({}), floats({2}), floats({2}), floats({2})}, 3) {
    const auto in = t.begin_loop(t.in(0), {t.in(1), t.in(2)}, 1);
    sum = t->call("Add", {in[2], in[3]});
    ir::Value* shifted = t->call("Add", {sum, t.in(3)});
    sum->type = shifted->type = floats({2});
    node = t.loop();
    inside = in;
    row = shifted;
    const auto out = t.end_loop({sum, in[3], shifted});
    for (size_t i = 0; i < out.size(); ++i) t->set_output(i, out[i]);
  }

  TestGraph t;
  ir::Node* node = nullptr;
  ir::Value *sum = nullptr, *row = nullptr;
  std::vector<ir::Value*> inside;
};

TEST(LoopView, TellsTheRolesInALoop) {
  LoopOfTwoStates loop;
  const LoopView view(*loop.node);
  EXPECT_FALSE(view.is_scan());
  EXPECT_EQ(view.trip_count(), loop.t.in(0));
  EXPECT_TRUE(view.condition()->is_constant());
  EXPECT_EQ(view.counter(), loop.inside[0]);
  EXPECT_EQ(view.condition_before(), loop.inside[1]);
  EXPECT_TRUE(view.condition_after()->is_constant());
  ASSERT_EQ(view.states(), 2U);
  EXPECT_EQ(view.state(0).initial, loop.t.in(1));
  EXPECT_EQ(view.state(0).before, loop.inside[2]);
  EXPECT_EQ(view.state(0).after, loop.sum);
  EXPECT_EQ(view.state(0).final, loop.node->outputs[0]);
  EXPECT_FALSE(view.is_kept(0));
  EXPECT_TRUE(view.is_kept(1));
  EXPECT_EQ(view.state_before(loop.inside[3]), 1U);
  EXPECT_EQ(view.state_before(loop.sum), 2U);
  EXPECT_EQ(view.scan_inputs(), 0U);
  ASSERT_EQ(view.scan_outputs(), 1U);
  EXPECT_EQ(view.scan_output(0).row, loop.row);
  EXPECT_EQ(view.scan_output(0).whole, loop.node->outputs[2]);
  EXPECT_THAT(view.captures(), ElementsAre(loop.t.in(3)));
}

TEST(LoopView, TellsTheRolesInAScan) {
  TestGraph t({floats({2}), floats({4, 2})}, 2);
  const auto in = t.begin_scan({t.in(0)}, {t.in(1)}, 1, true);
  ir::Value* sum = t->call("Add", {in[0], in[1]});
  const ir::Node* node = t.loop();
  t.end_scan({sum, sum});
  const LoopView view(*node);
  EXPECT_TRUE(view.is_scan());
  EXPECT_EQ(view.trip_count(), nullptr);
  EXPECT_EQ(view.counter(), nullptr);
  ASSERT_EQ(view.states(), 1U);
  EXPECT_EQ(view.state(0).before, in[0]);
  ASSERT_EQ(view.scan_inputs(), 1U);
  EXPECT_EQ(view.scan_input(0).whole, t.in(1));
  EXPECT_EQ(view.scan_input(0).element, in[1]);
  EXPECT_TRUE(view.scan_input(0).reverse);
  EXPECT_EQ(view.scan_output(0).row, sum);
  EXPECT_FALSE(view.scan_output(0).reverse);
}

TEST(LoopView, AScanOfVersion8HasLengthsBeforeItsStates) {
  ir::Graph graph;
  const OpDef& op = require_op("Scan");
  ir::Node* node = graph.new_node(&graph.top(), &op, op.version_for(8), "scan");
  node->attributes.set(ir::Attribute::of("num_scan_inputs", 1));
  graph.add_input(node, nullptr);
  ir::Value* state = graph.new_value("h", floats({1, 2}), &graph.top());
  ir::Value* whole = graph.new_value("x", floats({1, 4, 2}), &graph.top());
  graph.add_input(node, state);
  graph.add_input(node, whole);
  ir::Region* body = graph.new_region(node, "body");
  for (const char* name : {"h", "x"}) body->inputs.push_back(graph.new_value(name, floats({2}), body));
  body->outputs = body->inputs;
  for (const char* name : {"last", "rows"}) graph.add_output(node, name);
  const LoopView view(*node);
  ASSERT_EQ(view.states(), 1U);
  EXPECT_EQ(view.state(0).initial, state);
  EXPECT_EQ(view.state(0).before, body->inputs[0]);
  EXPECT_EQ(view.scan_input(0).whole, whole);
  EXPECT_EQ(view.scan_output(0).whole, node->outputs[1]);
}

TEST(LoopView, ReportsAWrongSignature) {
  LoopOfTwoStates loop;
  loop.node->regions[0]->outputs.resize(2);
  const auto short_of_a_state = LoopView::read(*loop.node);
  ASSERT_FALSE(short_of_a_state.ok());
  EXPECT_THAT(short_of_a_state.error().message(), testing::HasSubstr("expected a condition and one per state: 3"));
}

TEST(LoopEditor, AStateGoesOnAllSides) {
  LoopOfTwoStates loop;
  loop.node->regions[0]->output_types.resize(4);
  ir::Value* rows = loop.node->outputs[2];
  LoopEditor editor(*loop.node);
  editor.remove_state(1);
  EXPECT_EQ(loop.node->inputs.size(), 3U);
  EXPECT_EQ(loop.node->input_count, 3U);
  EXPECT_EQ(loop.node->regions[0]->inputs.size(), 3U);
  EXPECT_EQ(loop.node->regions[0]->output_types.size(), 3U);
  EXPECT_EQ(editor.scan_output(0).row, loop.row);
  EXPECT_EQ(editor.scan_output(0).whole, rows);
  EXPECT_EQ(rows->output_index, 1U);
  EXPECT_EQ(LoopView(*loop.node).states(), 1U);
}

TEST(LoopEditor, AStateIsAddedBehindTheOthers) {
  LoopOfTwoStates loop;
  ir::Value* rows = loop.node->outputs[2];
  LoopEditor editor(*loop.node);
  ir::Value* before = loop.t.graph().new_value("more", floats({2}), &editor.body());
  ir::Value* final = editor.add_state(loop.t.in(1), before, before, "last");
  const LoopView view(*loop.node);
  ASSERT_EQ(view.states(), 3U);
  EXPECT_EQ(view.state(2).initial, loop.t.in(1));
  EXPECT_EQ(view.state(2).before, before);
  EXPECT_EQ(view.state(2).final, final);
  EXPECT_TRUE(view.is_kept(2));
  EXPECT_EQ(final->output_index, 2U);
  EXPECT_EQ(view.scan_output(0).whole, rows);
  EXPECT_EQ(rows->output_index, 3U);
}

TEST(LoopEditor, ScanInputsAndOutputsComeAndGoWithTheirDirections) {
  TestGraph t({floats({2}), floats({4, 2}), floats({4, 2})}, 1);
  const auto in = t.begin_scan({t.in(0)}, {t.in(1)});
  ir::Value* sum = t->call("Add", {in[0], in[1]});
  sum->type = floats({2});
  ir::Node* node = t.loop();
  t.end_scan({sum});
  LoopEditor editor(*node);
  ir::Value* element = t.graph().new_value("y", floats({2}), &editor.body());
  editor.add_scan_input(t.in(2), element, true);
  EXPECT_EQ(node->attributes.get_int("num_scan_inputs"), 2);
  EXPECT_THAT(node->attributes.get_ints("scan_input_directions"), ElementsAre(0, 1));
  ir::Value* rows = editor.add_scan_output(sum, Dim(4), true, "rows");
  EXPECT_TRUE(same(rows->type.shape, Shape{4, 2}));
  EXPECT_THAT(node->attributes.get_ints("scan_output_directions"), ElementsAre(1));
  editor.remove_scan_input(0);
  const LoopView view(*node);
  ASSERT_EQ(view.scan_inputs(), 1U);
  EXPECT_EQ(view.scan_input(0).whole, t.in(2));
  EXPECT_EQ(view.scan_input(0).element, element);
  EXPECT_TRUE(view.scan_input(0).reverse);
  EXPECT_EQ(view.scan_output(0).whole, rows);
  editor.clear_scan_output(0);
  EXPECT_FALSE(editor.scan_output(0).wanted());
}

TEST(LoopEditor, ALoopBecomesAScan) {
  LoopOfTwoStates loop;
  LoopEditor editor(*loop.node);
  ir::Value* counter = editor.counter();
  editor.become_scan();
  editor.add_scan_input(loop.t.in(3), counter, false);
  const LoopView view(*loop.node);
  EXPECT_TRUE(view.is_scan());
  ASSERT_EQ(view.states(), 2U);
  EXPECT_EQ(view.state(0).initial, loop.t.in(1));
  EXPECT_EQ(view.state(0).after, loop.sum);
  ASSERT_EQ(view.scan_inputs(), 1U);
  EXPECT_EQ(view.scan_input(0).element, counter);
  EXPECT_EQ(view.scan_output(0).row, loop.row);
}

}  // namespace
}  // namespace treadle
