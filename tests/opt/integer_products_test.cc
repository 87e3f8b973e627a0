#include <gtest/gtest.h>

#include "op/registry.h"
#include "opt/passes.h"

namespace treadle::opt {
namespace {

// Graphs of nodes on matrices of [3, 4] by [4, 5].
class IntegerProducts : public ::testing::Test {
 protected:
  IntegerProducts() {
    a_ = graph_.new_value("a", Type::tensor(ElementType::kUint8, {Dim(3), Dim(4)}), &graph_.top());
    other_ = graph_.new_value("other", Type::tensor(ElementType::kFloat, {Dim(3), Dim(5)}), &graph_.top());
    graph_.top().inputs = {a_, other_};
    b_ = graph_.new_constant("b", Tensor::allocate(ElementType::kInt8, {4, 5}).value());
    zero_ = graph_.new_constant("zero", Tensor::scalar<uint8_t>(ElementType::kUint8, 3));
    scale_ = graph_.new_constant("scale", Tensor::scalar<float>(ElementType::kFloat, 0.5f));
    bias_ = graph_.new_constant("bias", Tensor::allocate(ElementType::kFloat, {5}).value());
  }

  ir::Value* node(const char* op, std::vector<ir::Value*> inputs, ElementType type, Shape shape = {Dim(3), Dim(5)}) {
    const OpDef& def = require_op(op);
    ir::Node* made = graph_.new_node(&graph_.top(), &def, def.version_for(21), op + std::to_string(count_++));
    for (ir::Value* v : inputs) graph_.add_input(made, v);
    return graph_.add_output(made, "v" + std::to_string(count_++), Type::tensor(type, std::move(shape)));
  }
  ir::Value* product() {
    return node("Cast", {node("MatMulInteger", {a_, b_, zero_}, ElementType::kInt32)}, ElementType::kFloat);
  }
  ir::Value* scaled() { return node("Mul", {product(), scale_}, ElementType::kFloat); }

  // The names of the operators that remain after `pass`.
  std::string after(void (*pass)(ir::Graph&, Remarks*), std::vector<ir::Value*> results) {
    graph_.top().outputs = std::move(results);
    EXPECT_TRUE(ir::verify(graph_).ok());
    pass(graph_, nullptr);
    remove_dead_nodes(graph_);
    EXPECT_TRUE(ir::verify(graph_).ok());
    std::string names;
    for (const auto& n : graph_.top().nodes) names += (names.empty() ? "" : " ") + n->op->name;
    return names;
  }

  ir::Graph graph_;
  ir::Value *a_, *other_, *b_, *zero_, *scale_, *bias_;
  int count_ = 0;
};

TEST_F(IntegerProducts, TakeInWhatFollows) {
  ir::Value* sum = node("Add", {bias_, scaled()}, ElementType::kFloat);
  ir::Value* y = node("QuantizeLinear", {sum, scale_, zero_}, ElementType::kUint8);
  EXPECT_EQ(after(fuse_integer_products, {y}), "ScaledMatMulInteger");
  EXPECT_EQ(graph_.top().nodes.back()->inputs,
            (decltype(ir::Node::inputs){a_, b_, zero_, nullptr, scale_, graph_.top().nodes.back()->inputs[5], bias_,
                                        scale_, zero_}));
}

TEST_F(IntegerProducts, LeaveWhatOthersRead) {
  ir::Value* sums = product();
  ir::Value* y = node("Mul", {sums, scale_}, ElementType::kFloat);
  EXPECT_EQ(after(fuse_integer_products, {sums, y}), "MatMulInteger Cast Mul");
}

TEST_F(IntegerProducts, LeaveScalesOfElements) {
  EXPECT_EQ(after(fuse_integer_products, {node("Mul", {product(), other_}, ElementType::kFloat)}),
            "MatMulInteger Cast Mul");
}

TEST_F(IntegerProducts, LeaveSumsWithMatrices) {
  EXPECT_EQ(after(fuse_integer_products, {node("Add", {scaled(), other_}, ElementType::kFloat)}),
            "ScaledMatMulInteger Add");
}

TEST_F(IntegerProducts, OfDequantisedBytes) {
  ir::Value* a = node("DequantizeLinear", {a_, scale_, zero_}, ElementType::kFloat, {Dim(3), Dim(4)});
  ir::Value* b = node("DequantizeLinear", {b_, scale_}, ElementType::kFloat, {Dim(4), Dim(5)});
  EXPECT_EQ(after(sum_in_integers, {node("MatMul", {a, b}, ElementType::kFloat)}), "ScaledMatMulInteger");
}

TEST_F(IntegerProducts, OfDequantisedBytesThatOthersRead) {
  ir::Value* a = node("DequantizeLinear", {a_, scale_, zero_}, ElementType::kFloat, {Dim(3), Dim(4)});
  ir::Value* b = node("DequantizeLinear", {b_, scale_}, ElementType::kFloat, {Dim(4), Dim(5)});
  EXPECT_EQ(after(sum_in_integers, {node("MatMul", {a, b}, ElementType::kFloat), a}),
            "DequantizeLinear ScaledMatMulInteger");
}

TEST_F(IntegerProducts, NotOfOneDequantisedOperand) {
  ir::Value* b = node("DequantizeLinear", {b_, scale_}, ElementType::kFloat, {Dim(4), Dim(5)});
  ir::Value* a = node("Cast", {a_}, ElementType::kFloat, {Dim(3), Dim(4)});
  EXPECT_EQ(after(sum_in_integers, {node("MatMul", {a, b}, ElementType::kFloat)}), "DequantizeLinear Cast MatMul");
}

}  // namespace
}  // namespace treadle::opt
