#include <gtest/gtest.h>

#include "op/registry.h"
#include "opt/passes.h"

namespace treadle::opt {
namespace {

class TransposesTest : public ::testing::Test {
 protected:
  ir::Value* input(const char* name, Shape shape) {
    ir::Value* v = graph_.new_value(name, Type::tensor(ElementType::kFloat, std::move(shape)), &graph_.top());
    graph_.top().inputs.push_back(v);
    return v;
  }
  ir::Value* node(const char* op, const std::vector<ir::Value*>& inputs, std::vector<int64_t> perm = {}) {
    const OpDef& def = require_op(op);
    ir::Node* made = graph_.new_node(&graph_.top(), &def, &def.newest(), op);
    if (!perm.empty()) made->attributes.set(ir::Attribute::of("perm", std::move(perm)));
    for (ir::Value* v : inputs) graph_.add_input(made, v);
    return graph_.add_output(made, std::string(op) + "_out");
  }
  // The names of the remaining operators.
  std::string after() {
    EXPECT_TRUE(ir::verify(graph_).ok());
    fuse_transposes(graph_);
    remove_dead_nodes(graph_);
    EXPECT_TRUE(ir::verify(graph_).ok());
    std::string names;
    for (const auto& n : graph_.top().nodes) names += (names.empty() ? "" : " ") + n->op->name;
    return names;
  }
  std::vector<int64_t> attribute(const char* name) const {
    const auto ints = graph_.top().nodes.back()->attributes.get_ints(name);
    return {ints.begin(), ints.end()};
  }

  ir::Graph graph_;
};

TEST_F(TransposesTest, ProductReadsItsOperandsInAnotherOrder) {
  ir::Value *q = input("q", {2, 5, 3, 4}), *k = input("k", {2, 7, 3, 4});
  graph_.top().outputs = {
      node("MatMul", {node("Transpose", {q}, {0, 2, 1, 3}), node("Transpose", {k}, {0, 2, 3, -3})})};
  EXPECT_EQ(after(), "PermutedMatMul");
  EXPECT_EQ(graph_.top().nodes[0]->inputs, (InlineVector<ir::Value*, 4>{q, k}));
  EXPECT_EQ(attribute("perm_a"), (std::vector<int64_t>{0, 2, 1, 3}));
  EXPECT_EQ(attribute("perm_b"), (std::vector<int64_t>{0, 2, 3, 1}));
}

TEST_F(TransposesTest, WithoutPermAxesAreReversed) {
  ir::Value *a = input("a", {5, 4}), *b = input("b", {7, 4});
  graph_.top().outputs = {node("MatMul", {a, node("Transpose", {b})})};
  EXPECT_EQ(after(), "PermutedMatMul");
  EXPECT_EQ(attribute("perm_b"), (std::vector<int64_t>{1, 0}));
  EXPECT_TRUE(attribute("perm_a").empty());
}

TEST_F(TransposesTest, ValuesThatOthersReadAreCopiedAnyway) {
  ir::Value *a = input("a", {5, 4}), *b = input("b", {7, 4});
  ir::Value* t = node("Transpose", {b}, {1, 0});
  graph_.top().outputs = {node("MatMul", {a, t}), node("Relu", {t})};
  EXPECT_EQ(after(), "Transpose MatMul Relu");
}

TEST_F(TransposesTest, ResultsStay) {
  ir::Value *a = input("a", {5, 4}), *b = input("b", {7, 4});
  ir::Value* t = node("Transpose", {b}, {1, 0});
  graph_.top().outputs = {node("MatMul", {a, t}), t};
  EXPECT_EQ(after(), "Transpose MatMul");
}

}  // namespace
}  // namespace treadle::opt
