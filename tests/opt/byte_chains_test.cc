#include <gtest/gtest.h>

#include "op/registry.h"
#include "opt/bytes.h"
#include "opt/passes.h"

namespace treadle::opt {
namespace {

// Graphs between bytes of [2, 6].
class ByteChains : public ::testing::Test {
 protected:
  ByteChains() {
    a_ = graph_.new_value("a", Type::tensor(ElementType::kUint8, {Dim(2), Dim(6)}), &graph_.top());
    b_ = graph_.new_value("b", Type::tensor(ElementType::kUint8, {Dim(2), Dim(6)}), &graph_.top());
    graph_.top().inputs = {a_, b_};
    scale_ = constant(0.5f);
    other_ = constant(0.25f);
    zero_ = graph_.new_constant("zero", Tensor::scalar<uint8_t>(ElementType::kUint8, 3));
  }

  ir::Value* constant(float number) {
    return graph_.new_constant("scale", Tensor::scalar<float>(ElementType::kFloat, number));
  }
  ir::Value* node(const char* op, std::vector<ir::Value*> inputs, ElementType type = ElementType::kFloat,
                  Shape shape = {Dim(2), Dim(6)}) {
    const OpDef& def = require_op(op);
    ir::Node* made = graph_.new_node(&graph_.top(), &def, def.version_for(21), op + std::to_string(count_++));
    for (ir::Value* v : inputs) graph_.add_input(made, v);
    return graph_.add_output(made, "v" + std::to_string(count_++), Type::tensor(type, std::move(shape)));
  }
  ir::Value* wide(ir::Value* x, ir::Value* scale) { return node("DequantizeLinear", {x, scale, zero_}); }
  ir::Value* narrow(ir::Value* x, Shape shape = {Dim(2), Dim(6)}) {
    return node("QuantizeLinear", {x, scale_, zero_}, ElementType::kUint8, std::move(shape));
  }

  // The names of the remaining operators.
  std::string after(std::vector<ir::Value*> results) {
    graph_.top().outputs = std::move(results);
    EXPECT_TRUE(ir::verify(graph_).ok());
    compute_on_bytes(graph_);
    EXPECT_TRUE(ir::verify(graph_).ok());
    std::string names;
    for (const auto& n : graph_.top().nodes) names += (names.empty() ? "" : " ") + n->op->name;
    return names;
  }

  ir::Graph graph_;
  ir::Value *a_, *b_, *scale_, *other_, *zero_;
  int count_ = 0;
};

TEST_F(ByteChains, OfOneTensorAreTables) {
  ir::Value* x = wide(a_, scale_);
  ir::Value* y = narrow(node("Mul", {node("Sigmoid", {x}), x}));
  EXPECT_EQ(after({y}), "LookUpBytes");
  const Tensor& table = graph_.top().nodes[0]->inputs[1]->constant;
  ASSERT_EQ(table.element_count(), 256);
  const auto at = [&](int i) { return +static_cast<const uint8_t*>(table.raw())[i]; };
  EXPECT_EQ(at(3), 3);    // 0
  EXPECT_EQ(at(23), 23);  // of 10: 9.9995
  EXPECT_EQ(at(0), 2);    // of -1.5: -0.27
  EXPECT_EQ(at(255), 255);
}

TEST_F(ByteChains, OfTheSameScaleAreNothing) {
  EXPECT_EQ(after({narrow(wide(a_, scale_))}), "Identity");
}

TEST_F(ByteChains, OfTwoTensorsAreOnePass) {
  EXPECT_EQ(after({narrow(node("Relu", {node("Add", {wide(a_, scale_), wide(b_, other_)})}))}), "QuantizedPairs");
  EXPECT_EQ(graph_.top().nodes[0]->attributes.get_float("low"), 0);
}

TEST_F(ByteChains, LeaveFloatsThatOthersRead) {
  ir::Value* sum = node("Add", {wide(a_, scale_), wide(b_, other_)});
  EXPECT_EQ(after({narrow(sum), sum}), "DequantizeLinear DequantizeLinear Add QuantizeLinear");
}

TEST_F(ByteChains, OfATensorAndFloatsAreOnePass) {
  ir::Value* other = graph_.new_value("f", Type::tensor(ElementType::kFloat, {Dim(2), Dim(6)}), &graph_.top());
  graph_.top().inputs.push_back(other);
  EXPECT_EQ(after({narrow(node("Add", {other, wide(a_, scale_)}))}), "QuantizedPairs");
  EXPECT_EQ(graph_.top().nodes[0]->inputs[3], other);
}

TEST_F(ByteChains, OfFloatsLessATensorAreSums) {
  ir::Value* other = graph_.new_value("f", Type::tensor(ElementType::kFloat, {Dim(2), Dim(6)}), &graph_.top());
  graph_.top().inputs.push_back(other);
  EXPECT_EQ(after({narrow(node("Sub", {other, wide(a_, scale_)}))}), "QuantizedPairs");
  const ir::Node& made = *graph_.top().nodes[0];
  EXPECT_EQ(made.attributes.get_string("op"), "Add");
  EXPECT_EQ(*static_cast<const float*>(made.inputs[1]->constant.raw()), -0.5f);
}

TEST_F(ByteChains, MoveBytes) {
  ir::Value* joined = node("Concat", {wide(a_, scale_), wide(b_, other_)}, ElementType::kFloat, {Dim(4), Dim(6)});
  joined->producer->attributes.set(ir::Attribute::of("axis", 0));
  ir::Value* turned = node("Transpose", {joined}, ElementType::kFloat, {Dim(6), Dim(4)});
  EXPECT_EQ(after({narrow(turned, {Dim(6), Dim(4)})}), "Identity LookUpBytes Concat Transpose");
}

TEST_F(ByteChains, LeaveMovesOfFloats) {
  ir::Value* other = graph_.new_value("f", Type::tensor(ElementType::kFloat, {Dim(2), Dim(6)}), &graph_.top());
  graph_.top().inputs.push_back(other);
  ir::Value* turned = node("Transpose", {other}, ElementType::kFloat, {Dim(6), Dim(2)});
  EXPECT_EQ(after({narrow(turned, {Dim(6), Dim(2)})}), "Transpose QuantizeLinear");
}

}  // namespace
}  // namespace treadle::opt
