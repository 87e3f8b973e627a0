// Checks in the run of sizes that no plan knows.
#include "plan/unknown_sizes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/registry.h"
#include "op/size_check.h"
#include "opt/passes.h"

namespace treadle::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// y = Relu(x)
struct UnknownSizesTest : testing::Test {
  ir::Graph graph;
  ir::Region& top = graph.top();
  ir::Node* node = nullptr;
  ir::Value *x = nullptr, *y = nullptr;

  void SetUp() override {
    const OpDef& relu = require_op("Relu", "");
    x = graph.new_value("x", Type::tensor(ElementType::kFloat), &top);
    top.inputs.push_back(x);
    node = graph.new_node(&top, &relu, &relu.newest(), "relu");
    graph.add_input(node, x);
    y = graph.add_output(node, "y", floats({Dim(), int64_t{4}}));
    top.outputs.push_back(y);
  }
  static Type floats(Shape shape) { return Type::tensor(ElementType::kFloat, std::move(shape)); }
  static Status inferred(const ir::Node& check, const Type& made) {
    const Type* const inputs[] = {&made};
    Type output;
    InferContext context{check, inputs, {}, {}, {&output, 1}, {}, {}};
    return check.op->infer(context);
  }
};

TEST_F(UnknownSizesTest, AResultIsHeldToTheSizesThatPlanningReliesOn) {
  hold_in_run(graph, top, *node, y, floats({int64_t{2}, int64_t{4}}));
  ASSERT_EQ(top.nodes.size(), 2U);
  const ir::Node& check = *top.nodes[1];
  EXPECT_EQ(check.op->name, "CheckResult");
  EXPECT_THAT(check.attributes.get_ints("sizes"), ElementsAre(2, 4));
  EXPECT_TRUE(inferred(check, floats({int64_t{2}, int64_t{4}})).ok());
  for (const Shape& wrong : {Shape{int64_t{3}, int64_t{4}}, Shape{int64_t{2}, int64_t{4}, int64_t{1}}, Shape{}}) {
    const Status refused = inferred(check, floats(wrong));
    EXPECT_EQ(refused.code(), Code::kInvalidArgument);
    EXPECT_THAT(refused.message(), HasSubstr("a result of shape " + to_string(wrong) + ", expected [2,4]"));
  }
}

TEST_F(UnknownSizesTest, AResultOfWhichNoMoreIsStatedIsNotHeld) {
  hold_in_run(graph, top, *node, y, floats({Dim(), int64_t{4}}));
  hold_in_run(graph, top, *node, y, Type::tensor(ElementType::kFloat));
  EXPECT_EQ(top.nodes.size(), 1U);
}

TEST_F(UnknownSizesTest, ChecksStayThoughNobodyReadsThem) {
  ask_in_run(graph, top, *node);
  hold_in_run(graph, top, *node, y, floats({int64_t{2}, int64_t{4}}));
  opt::remove_dead_nodes(graph);
  ASSERT_EQ(top.nodes.size(), 3U);
  EXPECT_TRUE(is_size_check(*top.nodes[1]->op));
  EXPECT_TRUE(is_size_check(*top.nodes[2]->op));
  EXPECT_TRUE(ir::verify(graph).ok());
}

TEST_F(UnknownSizesTest, ANodeIsAskedAboutWhatNoPlanKnows) {
  EXPECT_TRUE(has_unknown_sizes(*node, false));
  x->type = floats({int64_t{2}, Dim::symbol("iteration.0")});
  EXPECT_FALSE(has_unknown_sizes(*node, false));
  EXPECT_TRUE(has_unknown_sizes(*node, true));
  x->type = floats({int64_t{2}, int64_t{4}});
  EXPECT_FALSE(has_unknown_sizes(*node, true));
}

}  // namespace
}  // namespace treadle::plan
