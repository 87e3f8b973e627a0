#include <gtest/gtest.h>

#include "op/registry.h"
#include "opt/passes.h"

namespace treadle::opt {
namespace {

// Products of x [3, 256] by weights [256, 256] that are stored as bytes.
class ByteWeights : public ::testing::Test {
 protected:
  ByteWeights() {
    x_ = graph_.new_value("x", Type::tensor(ElementType::kFloat, {Dim(3), Dim(256)}), &graph_.top());
    graph_.top().inputs = {x_};
    bytes_ = constant(ElementType::kInt8, {256, 256});
    zero_ = graph_.new_constant("zero", Tensor::scalar<int8_t>(ElementType::kInt8, 0));
  }

  ir::Value* constant(ElementType type, Dims dims) {
    Tensor made = Tensor::allocate(type, std::move(dims)).value();
    auto* data = static_cast<uint8_t*>(made.mutable_raw());
    for (size_t i = 0; i < made.byte_size(); ++i) data[i] = static_cast<uint8_t>(i * 37 % 251);
    return graph_.new_constant("constant" + std::to_string(count_++), made);
  }
  ir::Value* scale(float value) {
    return graph_.new_constant("scale", Tensor::scalar<float>(ElementType::kFloat, value));
  }
  ir::Value* node(const char* op, std::vector<ir::Value*> inputs, Shape shape,
                  std::vector<ir::Attribute> attributes = {}) {
    const OpDef& def = require_op(op);
    ir::Node* made = graph_.new_node(&graph_.top(), &def, def.version_for(21), op + std::to_string(count_++));
    for (ir::Value* v : inputs) graph_.add_input(made, v);
    for (ir::Attribute& a : attributes) made->attributes.set(std::move(a));
    return graph_.add_output(made, "v" + std::to_string(count_++), Type::tensor(ElementType::kFloat, std::move(shape)));
  }
  ir::Value* product(ir::Value* weights) { return node("MatMul", {x_, weights}, {Dim(3), Dim(256)}); }

  std::string names() const {
    std::string names;
    for (const auto& n : graph_.top().nodes) names += (names.empty() ? "" : " ") + n->op->name;
    return names;
  }
  void load(std::vector<ir::Value*> results) {
    graph_.top().outputs = std::move(results);
    keep_byte_weights(graph_);
    fold_constants(graph_);
    EXPECT_TRUE(ir::verify(graph_).ok());
  }
  std::string planned() {
    read_byte_weights(graph_);
    EXPECT_TRUE(ir::verify(graph_).ok());
    return names();
  }

  ir::Graph graph_;
  ir::Value *x_, *bytes_, *zero_;
  int count_ = 0;
};

TEST_F(ByteWeights, AreReadByProducts) {
  load({product(node("DequantizeLinear", {bytes_, scale(0.5f), zero_}, {Dim(256), Dim(256)}))});
  EXPECT_EQ(names(), "DequantizedWeights MatMul");
  EXPECT_EQ(planned(), "DequantizedProduct");
  EXPECT_EQ(graph_.top().nodes[0]->inputs[1]->constant.type(), ElementType::kInt8);
}

TEST_F(ByteWeights, MoveAsTheirFloatsWould) {
  ir::Value* floats = node("DequantizeLinear", {bytes_, scale(0.5f), zero_}, {Dim(256), Dim(256)});
  load({product(
      node("Transpose", {floats}, {Dim(256), Dim(256)}, {ir::Attribute::of("perm", std::vector<int64_t>{1, 0})}))});
  EXPECT_EQ(names(), "DequantizedWeights MatMul");
  EXPECT_EQ(planned(), "DequantizedProduct");
  const auto *before = bytes_->constant.data<int8_t>(),
             *after = graph_.top().nodes[0]->inputs[1]->constant.data<int8_t>();
  for (int64_t i = 0; i < 256; ++i) EXPECT_EQ(after[i * 256 + 3], before[3 * 256 + i]);
}

TEST_F(ByteWeights, TakeAlongTheScalesOfTheirParts) {
  ir::Value* left =
      node("DequantizeLinear", {constant(ElementType::kInt8, {256, 128}), scale(0.5f), zero_}, {Dim(256), Dim(128)});
  ir::Value* right =
      node("DequantizeLinear", {constant(ElementType::kInt8, {256, 128}), scale(0.25f), zero_}, {Dim(256), Dim(128)});
  load({product(node("Concat", {left, right}, {Dim(256), Dim(256)}, {ir::Attribute::of("axis", int64_t{1})}))});
  EXPECT_EQ(names(), "DequantizedWeights MatMul");
  EXPECT_EQ(planned(), "DequantizedProduct");
  const auto scales = graph_.top().nodes[0]->inputs[3]->constant.span<float>();
  ASSERT_EQ(scales.size(), 256u);
  EXPECT_EQ(scales[127], 0.5f);
  EXPECT_EQ(scales[128], 0.25f);
}

TEST_F(ByteWeights, BecomeFloatsWhereScalesBelongToRows) {
  ir::Value* floats = node("DequantizeLinear", {bytes_, constant(ElementType::kFloat, {256})}, {Dim(256), Dim(256)},
                           {ir::Attribute::of("axis", int64_t{0})});
  load({product(floats)});
  EXPECT_EQ(names(), "DequantizedWeights MatMul");
  EXPECT_EQ(planned(), "MatMul");
  EXPECT_EQ(graph_.top().nodes[0]->inputs[1]->constant.type(), ElementType::kFloat);
}

TEST_F(ByteWeights, AreFloatsWhereOthersReadThem) {
  ir::Value* floats = node("DequantizeLinear", {bytes_, scale(0.5f), zero_}, {Dim(256), Dim(256)});
  load({product(floats), floats});
  EXPECT_EQ(names(), "MatMul");
}

}  // namespace
}  // namespace treadle::opt
