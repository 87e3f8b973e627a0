// If, Loop and Scan: input types give output types; the test plays the inference of their bodies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "op/registry.h"
#include "ops/control/loop.h"

namespace treadle {
namespace {

using ir::Attribute;
using testing::HasSubstr;

Type floats(Shape shape) {
  return Type::tensor(ElementType::kFloat, std::move(shape));
}
Type int64s(Shape shape) {
  return Type::tensor(ElementType::kInt64, std::move(shape));
}

// Bodies with as many inputs as they are asked to infer, and the outputs that the test wants.
class FakeBodies final : public BodyInference {
 public:
  explicit FakeBodies(std::vector<Type> outputs) : outputs_(std::move(outputs)) {}
  Result<std::vector<Type>> infer(const char* attribute, std::vector<Type> inputs, size_t) override {
    seen[attribute] = std::move(inputs);
    const auto it = special.find(attribute);
    return it == special.end() ? outputs_ : it->second;
  }
  const ir::Region* region(const char*) const override { return nullptr; }

  std::unordered_map<std::string, std::vector<Type>> seen;
  std::unordered_map<std::string, std::vector<Type>> special;

 private:
  std::vector<Type> outputs_;
};

struct Inferred {
  Status status;
  std::vector<Type> outputs;
};

Inferred infer(const char* op, int version, std::vector<Type> inputs, size_t outputs, FakeBodies& bodies,
               std::vector<Attribute> attributes = {}, std::vector<const Tensor*> values = {}) {
  ir::NodeInfo node;
  node.op = &require_op(op);
  node.version = node.op->version_for(version);
  node.input_count = static_cast<uint32_t>(inputs.size());
  node.output_count = static_cast<uint32_t>(outputs);
  for (Attribute& a : attributes) node.attributes.set(std::move(a));
  std::vector<const Type*> pointers;
  for (const Type& t : inputs) pointers.push_back(t.is_known() ? &t : nullptr);
  Inferred result;
  result.outputs.resize(outputs);
  InferContext context{node, pointers, values, {}, result.outputs, {}, {}, &bodies};
  result.status = node.op->infer(context);
  return result;
}

Attribute scan_inputs(int count) {
  return Attribute::of("num_scan_inputs", count);
}

TEST(Scan, TakesAxesOutAndPutsThemIn) {
  FakeBodies bodies({floats({2}), floats({2, 3})});
  const auto r = infer("Scan", 16, {floats({2}), floats({4, Dim::symbol("T")})}, 2, bodies,
                       {scan_inputs(1), Attribute::of("scan_input_axes", std::vector<int64_t>{-1}),
                        Attribute::of("scan_output_axes", std::vector<int64_t>{1})});
  ASSERT_TRUE(r.status.ok()) << r.status.to_string();
  EXPECT_EQ(bodies.seen["body"][1].to_string(), "tensor(float)[4]");
  EXPECT_EQ(r.outputs[0].to_string(), "tensor(float)[2]");
  EXPECT_EQ(r.outputs[1].to_string(), "tensor(float)[2,T,3]");
}

TEST(Scan, MergesTheLengthsOfItsInputs) {
  FakeBodies bodies({floats({})});
  const auto agree = infer("Scan", 16, {floats({Dim::symbol("T")}), floats({7})}, 1, bodies, {scan_inputs(2)});
  ASSERT_TRUE(agree.status.ok()) << agree.status.to_string();
  EXPECT_EQ(agree.outputs[0].to_string(), "tensor(float)[7]");
  const auto differ = infer("Scan", 16, {floats({6}), floats({7})}, 1, bodies, {scan_inputs(2)});
  EXPECT_THAT(differ.status.message(),
              HasSubstr("scan input 1 has length 7, expected that of the scan inputs before it, 6"));
}

TEST(Scan, Version8HasABatchAxisThatTheBodyDoesNotSee) {
  FakeBodies bodies({floats({2}), floats({})});
  const auto r =
      infer("Scan", 8, {Type(), floats({Dim::symbol("B"), 2}), floats({3, 5, 4})}, 2, bodies, {scan_inputs(1)});
  ASSERT_TRUE(r.status.ok()) << r.status.to_string();
  EXPECT_EQ(bodies.seen["body"][0].to_string(), "tensor(float)[2]");
  EXPECT_EQ(bodies.seen["body"][1].to_string(), "tensor(float)[4]");
  EXPECT_EQ(r.outputs[0].to_string(), "tensor(float)[3,2]");
  EXPECT_EQ(r.outputs[1].to_string(), "tensor(float)[3,5]");
}

TEST(Scan, StatesKeepTheirShape) {
  FakeBodies bodies({floats({3})});
  const auto runs = infer("Scan", 16, {floats({2}), floats({7})}, 1, bodies, {scan_inputs(1)});
  EXPECT_THAT(runs.status.message(), HasSubstr("iteration 0"));
  EXPECT_TRUE(infer("Scan", 16, {floats({2}), floats({0})}, 1, bodies, {scan_inputs(1)}).status.ok());
}

TEST(Scan, TakesNegativeAxesInEveryVersion) {
  FakeBodies bodies({floats({})});
  const std::vector<Attribute> attributes{scan_inputs(1), Attribute::of("scan_input_axes", std::vector<int64_t>{-1})};
  EXPECT_TRUE(infer("Scan", 11, {floats({7})}, 1, bodies, attributes).status.ok());
  EXPECT_TRUE(infer("Scan", 9, {floats({7})}, 1, bodies, attributes).status.ok());
}

TEST(Loop, AKnownTripCountIsTheLengthOfScanOutputs) {
  FakeBodies bodies({Type::tensor(ElementType::kBool, Shape{}), floats({2})});
  const Tensor m = Tensor::scalar<int64_t>(ElementType::kInt64, 6);
  const auto r = infer("Loop", 16, {int64s({})}, 1, bodies, {}, {&m});
  ASSERT_TRUE(r.status.ok()) << r.status.to_string();
  EXPECT_EQ(r.outputs[0].to_string(), "tensor(float)[6,2]");
  const Tensor negative = Tensor::scalar<int64_t>(ElementType::kInt64, -6);
  EXPECT_EQ(infer("Loop", 16, {int64s({})}, 1, bodies, {}, {&negative}).outputs[0].to_string(), "tensor(float)[0,2]");
}

TEST(Loop, ATripCountUnderAConditionIsNotExact) {
  FakeBodies bodies({Type::tensor(ElementType::kBool, Shape{}), floats({2})});
  const Tensor m = Tensor::scalar<int64_t>(ElementType::kInt64, 6);
  const Tensor yes = Tensor::scalar<bool>(ElementType::kBool, true),
               no = Tensor::scalar<bool>(ElementType::kBool, false);
  const std::vector<Type> inputs{int64s({}), Type::tensor(ElementType::kBool, Shape{})};
  EXPECT_EQ(infer("Loop", 16, inputs, 1, bodies, {}, {&m, &yes}).outputs[0].to_string(), "tensor(float)[?,2]");
  EXPECT_EQ(infer("Loop", 16, inputs, 1, bodies, {}, {&m, &no}).outputs[0].to_string(), "tensor(float)[0,2]");
}

TEST(Loop, AStateHasTheCommonTypeOfNoneAndSomeIterations) {
  FakeBodies bodies({Type::tensor(ElementType::kBool, Shape{}), floats({Dim(), 3})});
  const auto r = infer("Loop", 16, {Type(), Type::tensor(ElementType::kBool, Shape{}), floats({2, 3})}, 1, bodies);
  ASSERT_TRUE(r.status.ok()) << r.status.to_string();
  EXPECT_EQ(r.outputs[0].to_string(), "tensor(float)[?,3]");
}

TEST(Loop, TripCountAndConditionHoldOneElement) {
  FakeBodies bodies({});
  EXPECT_THAT(infer("Loop", 16, {int64s({2})}, 1, bodies).status.message(), HasSubstr("M has shape [2]"));
  EXPECT_THAT(infer("Loop", 16, {Type(), Type::tensor(ElementType::kBool, {Dim(3)})}, 1, bodies).status.message(),
              HasSubstr("cond has shape [3]"));
}

TEST(Loop, AConditionThatCannotBecomeFalse) {
  ir::Graph graph;
  ir::Node* loop = graph.new_node(&graph.top(), &require_op("Loop"), &require_op("Loop").newest(), "loop");
  ir::Region& body = *graph.new_region(loop, "body");
  for (const char* name : {"iteration", "condition"}) body.inputs.push_back(graph.new_value(name, {}, &body));
  ir::Node* identity = graph.new_node(&body, &require_op("Identity"), &require_op("Identity").newest(), "identity");
  graph.add_input(identity, body.inputs[1]);
  body.outputs.push_back(graph.add_output(identity, "same"));
  EXPECT_TRUE(condition_stays_true(LoopView(*loop)));
  body.outputs[0] = graph.new_constant("yes", Tensor::scalar<bool>(ElementType::kBool, true));
  EXPECT_TRUE(condition_stays_true(LoopView(*loop)));
  body.outputs[0] = graph.new_constant("no", Tensor::scalar<bool>(ElementType::kBool, false));
  EXPECT_FALSE(condition_stays_true(LoopView(*loop)));
  body.outputs[0] = body.inputs[0];
  EXPECT_FALSE(condition_stays_true(LoopView(*loop)));
}

TEST(If, UnitesItsBranches) {
  FakeBodies bodies({});
  bodies.special["then_branch"] = {floats({2, 3})};
  bodies.special["else_branch"] = {floats({2, 4})};
  const Type condition = Type::tensor(ElementType::kBool, Shape{});
  EXPECT_EQ(infer("If", 16, {condition}, 1, bodies).outputs[0].to_string(), "tensor(float)[2,?]");
  bodies.special["else_branch"] = {floats({2})};
  EXPECT_FALSE(infer("If", 16, {condition}, 1, bodies).outputs[0].has_shape);
  bodies.special["else_branch"] = {int64s({2, 3})};
  EXPECT_THAT(infer("If", 16, {condition}, 1, bodies).status.message(), HasSubstr("result 0"));
}

TEST(If, AKnownConditionLeavesTheOtherBranchAlone) {
  FakeBodies bodies({});
  bodies.special["then_branch"] = {floats({2, 3})};
  const Tensor yes = Tensor::scalar<bool>(ElementType::kBool, true);
  const auto r = infer("If", 16, {Type::tensor(ElementType::kBool, Shape{})}, 1, bodies, {}, {&yes});
  EXPECT_EQ(r.outputs[0].to_string(), "tensor(float)[2,3]");
  EXPECT_EQ(bodies.seen.count("else_branch"), 0u);
}

}  // namespace
}  // namespace treadle
