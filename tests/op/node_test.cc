// A node has its operator's defaults as soon as it has the operator.
#include "op/node.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "op/registry.h"

namespace treadle {
namespace {

template <class Fn>
void for_each_version(const Fn& fn) {
  for (const OpDef* op : all_ops()) {
    for (const OpVersion& version : op->versions) {
      SCOPED_TRACE(op->domain + "." + op->name + "-" + std::to_string(version.since));
      fn(*op, version);
    }
  }
}

void expect_defaults(const ir::Node& node) {
  for (const AttributeDef& def : node.version->attributes) {
    const ir::Attribute* found = node.attributes.find(def.name);
    ASSERT_EQ(found != nullptr, def.has_default()) << def.name;
    if (found) {
      EXPECT_EQ(found->kind, def.default_value.kind) << def.name;
    }
  }
}

TEST(Node, IsMadeWithTheDefaultsOfItsVersion) {
  for_each_version([](const OpDef& op, const OpVersion& version) {
    ir::Graph graph;
    expect_defaults(*graph.new_node(&graph.top(), &op, &version, "made"));
    EXPECT_TRUE(has_all_defaults(graph.top()));
  });
}

TEST(Node, HandsOnTheInputsWhoseElementsItMoves) {
  const auto hands = [](std::string_view name, std::initializer_list<size_t> inputs) {
    ir::Graph graph;
    const OpDef& op = require_op(name);
    const ir::Node& node = *graph.new_node(&graph.top(), &op, &op.newest(), "node");
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(hands_on(node, i), std::find(inputs.begin(), inputs.end(), i) != inputs.end()) << name << " " << i;
    }
  };
  hands("Reshape", {0});
  hands("Cast", {0});
  hands("CastLike", {0});
  hands("Gather", {0});
  hands("Slice", {0});
  hands("Pad", {0, 2});
  hands("OneHot", {2});
  hands("Concat", {0, 1, 2, 3});
  hands("Add", {});
  hands("Shape", {});
}

TEST(Node, BecomesAnotherOperatorWithTheDefaultsOfThat) {
  const OpDef& lrn = require_op("LRN");
  for_each_version([&](const OpDef& op, const OpVersion& version) {
    ir::Graph graph;
    ir::Node* node = graph.new_node(&graph.top(), &lrn, &lrn.newest(), "node");
    become(*node, op, version);
    EXPECT_EQ(node->op, &op);
    EXPECT_EQ(node->version, &version);
    expect_defaults(*node);
  });
}

TEST(Node, KeepsGivenAttributesWhenItsOperatorChanges) {
  ir::Graph graph;
  const OpDef& reshape = require_op("Reshape");
  ir::Node* node = graph.new_node(&graph.top(), &reshape, &reshape.newest(), "node");
  ir::Attributes given;
  given.set(ir::Attribute::of("detect_positive", 0));
  become(*node, require_op("IsInf"), given);
  EXPECT_EQ(node->attributes.get_int("detect_positive", -1), 0);
  EXPECT_EQ(node->attributes.get_int("detect_negative", -1), 1);
  EXPECT_FALSE(node->attributes.has("allowzero"));
}

// The nodes share their defaults until they change one.
TEST(Node, ChangesNoOtherNodesDefaults) {
  ir::Graph graph;
  const OpDef& gemm = require_op("Gemm");
  ir::Node* first = graph.new_node(&graph.top(), &gemm, &gemm.newest(), "first");
  ir::Node* second = graph.new_node(&graph.top(), &gemm, &gemm.newest(), "second");
  first->attributes.set(ir::Attribute::of("alpha", 0.5f));
  EXPECT_EQ(first->attributes.get_float("alpha"), 0.5f);
  EXPECT_EQ(second->attributes.get_float("alpha"), 1.0f);
}

TEST(Node, LacksDefaultsOnlyWhereTheyWereTakenAway) {
  ir::Graph graph;
  const OpDef& gemm = require_op("Gemm");
  ir::Node* node = graph.new_node(&graph.top(), &gemm, &gemm.newest(), "node");
  EXPECT_TRUE(has_all_defaults(graph.top()));
  node->attributes.erase("beta");
  EXPECT_FALSE(has_all_defaults(graph.top()));
}

}  // namespace
}  // namespace treadle
