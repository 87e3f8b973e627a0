#include "opt/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/place.h"
#include "opt/match.h"
#include "support/test_graph.h"

namespace treadle::opt {
namespace {

using testing::ElementsAre;
using namespace testing_support;  // NOLINT(google-build-using-namespace)

std::vector<std::string> operators(const ir::Region& region) {
  std::vector<std::string> ops;
  for (const auto& node : region.nodes) ops.push_back(node->op->name);
  return ops;
}

TEST(Builder, PutsNodesOneBehindTheOtherInFrontOfAPlace) {
  TestGraph t({floats({2})}, 1);
  t->set_output(0, t->call("Exp", {t->call("Neg", {t.in(0)})}));
  ir::Region& top = t.graph().top();
  const ir::Node& whole = *top.nodes[1];
  Builder build(t.graph(), top, 1, &whole);
  ir::Value* sum = build.call("Add", {t.in(0), t.in(0)}, floats({2}), "sum");
  build.call("MoveAxis", {sum}, floats({2}), "moved", {ir::Attribute::of("from", 0), ir::Attribute::of("to", 0)});
  EXPECT_THAT(operators(top), ElementsAre("Neg", "Add", "MoveAxis", "Exp"));
  EXPECT_EQ(build.added(), 2U);
  EXPECT_EQ(build.at(), 3U);
  EXPECT_EQ(sum->producer->name.view(), "sum");
  EXPECT_EQ(node_place(*sum->producer), node_place(whole));
  EXPECT_EQ(top.nodes[2]->op->domain, "treadle");
  EXPECT_EQ(top.nodes[2]->attributes.get_int("from", 7), 0);
}

TEST(Builder, AdoptsTheNodesOfABodyWithTheirResults) {
  TestGraph t({floats({2}), int64s({})}, 1);
  const auto in = t.begin_loop(t.in(1), {t.in(0)});
  ir::Value* half = t->call("Neg", {in[2]});
  t->set_output(0, t.end_loop({t->call("Exp", {half})})[0]);
  ir::Region& top = t.graph().top();
  const std::unique_ptr<ir::Node> loop = take_out(top, 0);
  Builder build(t.graph(), top, 0);
  build.adopt_all(*loop->regions[0]);
  EXPECT_THAT(operators(top), ElementsAre("Neg", "Exp"));
  EXPECT_EQ(half->owner, &top);
  EXPECT_EQ(half->producer->parent, &top);
  EXPECT_TRUE(loop->regions[0]->nodes.empty());
}

TEST(VisitNodes, VisitsBodiesFirstAndGoesOnBehindWhatItIsTold) {
  TestGraph t({floats({2}), int64s({})}, 1);
  const auto in = t.begin_loop(t.in(1), {t.in(0)});
  ir::Value* inside = t->call("Exp", {in[2]});
  t->set_output(0, t->call("Neg", {t.end_loop({inside})[0]}));
  std::vector<std::string> seen;
  visit_nodes(t.graph().top(), [&](ir::Region& region, size_t at) {
    seen.push_back(region.nodes[at]->op->name);
    if (!is(*region.nodes[at], "Loop")) return at;
    Builder build(t.graph(), region, at);
    build.call("Abs", {t.in(0)}, floats({2}), "new");
    return build.at();
  });
  EXPECT_THAT(seen, ElementsAre("Exp", "Loop", "Neg"));
}

}  // namespace
}  // namespace treadle::opt
