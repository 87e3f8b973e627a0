#include <gtest/gtest.h>

#include "op/registry.h"
#include "opt/passes.h"

namespace treadle::opt {
namespace {

class ConstantsTest : public ::testing::Test {
 protected:
  ir::Value* floats(Dims dims, std::vector<float> values) {
    Tensor t = Tensor::allocate(ElementType::kFloat, std::move(dims)).value();
    std::copy(values.begin(), values.end(), t.mutable_data<float>());
    return graph_.new_constant("c" + std::to_string(count_++), std::move(t));
  }
  ir::Value* int64s(std::vector<int64_t> values) {
    return graph_.new_constant("c" + std::to_string(count_++), Tensor::of_int64(values));
  }

  ir::Node* begin(const char* op, std::vector<ir::Value*> inputs, ir::Region* region) {
    const OpDef& def = require_op(op);
    ir::Node* made = graph_.new_node(region, &def, def.version_for(22), op + std::to_string(count_++));
    for (const AttributeDef& a : made->version->attributes) {
      if (a.has_default()) made->attributes.set(a.default_value);
    }
    for (ir::Value* v : inputs) graph_.add_input(made, v);
    return made;
  }
  ir::Value* node(const char* op, std::vector<ir::Value*> inputs, ir::Region* region = nullptr) {
    return graph_.add_output(begin(op, std::move(inputs), region ? region : &graph_.top()),
                             "v" + std::to_string(count_++));
  }

  std::string left() {
    EXPECT_TRUE(ir::verify(graph_).ok());
    fold_constants(graph_);
    EXPECT_TRUE(ir::verify(graph_).ok());
    std::string names;
    ir::for_each_node(graph_.top(), [&](ir::Node& n) { names += (names.empty() ? "" : " ") + n.op->name; });
    return names;
  }

  ir::Graph graph_;
  ir::Value* x_ = [this] {
    ir::Value* x = graph_.new_value("x", Type::tensor(ElementType::kFloat, {Dim(2), Dim(2)}), &graph_.top());
    graph_.top().inputs = {x};
    return x;
  }();
  int count_ = 0;
};

TEST_F(ConstantsTest, AChainBecomesItsEnd) {
  ir::Value* weights = floats({2, 2}, {1, 2, 3, 4});
  ir::Value* turned = node("Transpose", {weights});
  ir::Value* flat = node("Reshape", {turned, int64s({4})});
  ir::Value* sum = node("Add", {x_, node("Reshape", {flat, int64s({2, 2})})});
  graph_.top().outputs = {sum};
  EXPECT_EQ(left(), "Add");
  const Tensor& folded = sum->producer->inputs[1]->constant;
  ASSERT_TRUE(folded.defined());
  EXPECT_EQ(folded.dims(), Dims({2, 2}));
  EXPECT_EQ(folded.data<float>()[1], 3.0f);
  // Intermediate constants are freed.
  EXPECT_FALSE(weights->is_constant());
  EXPECT_FALSE(turned->is_constant());
  EXPECT_FALSE(flat->is_constant());
}

TEST_F(ConstantsTest, WhatOthersUseStays) {
  ir::Value* weights = floats({2, 2}, {1, 2, 3, 4});
  ir::Value* turned = node("Transpose", {weights});
  graph_.top().outputs = {node("Add", {x_, weights}), node("MatMul", {x_, turned}), turned};
  EXPECT_EQ(left(), "Add MatMul");
  EXPECT_TRUE(weights->is_constant());
  EXPECT_TRUE(turned->is_constant());
  EXPECT_EQ(turned->producer, nullptr);
}

TEST_F(ConstantsTest, BodiesAreFoldedAndMayBeTheOnlyUsers) {
  ir::Value* weights = floats({2, 2}, {1, 2, 3, 4});
  ir::Value* turned = node("Transpose", {weights});
  ir::Value* condition = node("Equal", {node("ReduceSum", {x_}), floats({1, 1}, {0})});
  ir::Node* choice = begin("If", {condition}, &graph_.top());
  for (const char* name : {"then_branch", "else_branch"}) {
    ir::Region* branch = graph_.new_region(choice, name);
    branch->outputs = {node("Neg", {turned}, branch)};
  }
  graph_.top().outputs = {graph_.add_output(choice, "y")};
  EXPECT_EQ(left(), "ReduceSum Equal If");
  for (const auto& branch : choice->regions) {
    ASSERT_TRUE(branch->outputs[0]->is_constant());
    EXPECT_EQ(branch->outputs[0]->constant.data<float>()[1], -3.0f);
  }
  EXPECT_FALSE(turned->is_constant());
}

TEST_F(ConstantsTest, WhatFailsOrIsRandomOrLargeStays) {
  graph_.top().outputs = {node("Reshape", {floats({3}, {1, 2, 3}), int64s({2, 2})}),
                          node("RandomNormalLike", {floats({1}, {0})}),
                          node("Expand", {floats({1}, {0}), int64s({1 << 21})})};
  EXPECT_EQ(left(), "Reshape RandomNormalLike Expand");
}

}  // namespace
}  // namespace treadle::opt
