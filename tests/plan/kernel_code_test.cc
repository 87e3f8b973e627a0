// The computation of an instruction's kernel, as it is stored with an instruction of a loop when it is emitted.
#include "plan/kernel_code.h"

#include <gtest/gtest.h>

#include <cstring>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using plan::KernelCall;

// A node of this operator on the state s, float[4, 6], and constants, in a loop that is planned without rewrites.
class OneKernel {
 public:
  OneKernel(const std::string& op, const std::vector<Tensor>& constants, std::vector<ir::Attribute> attributes = {},
            size_t outputs = 1, size_t states = 1)
      : t_({int64s({}), floats({4, 6})}, outputs + 1) {
    const auto body = t_.begin_loop(t_.in(0), {t_.in(1)}, outputs);
    std::vector<ir::Value*> inputs(states, body[2]);
    for (const Tensor& constant : constants) inputs.push_back(constant.defined() ? t_->constant(constant) : nullptr);
    const ir::Node* node = t_->node(op, inputs, outputs, std::move(attributes));
    std::vector<ir::Value*> results{t_->call("Tanh", {body[2]})};
    results.insert(results.end(), node->outputs.begin(), node->outputs.end());
    const auto all = t_.end_loop(results);
    for (size_t i = 0; i < outputs + 1; ++i) t_->set_output(i, all[i]);
    planned_ = plan_of(t_, false);
    for (at_ = 0; at_ < program().code.size(); ++at_) {
      if (plan::kernel_of(program(), at_) && program().node_of[at_]->op->name == op) return;
    }
    ADD_FAILURE() << op << " is no kernel";
  }

  const plan::Program& program() const { return *planned_->program; }
  const KernelCall& call() const { return *plan::kernel_of(program(), at_); }
  template <class Code>
  const Code* code() const {
    const plan::InstructionCode* other = plan::other_code(program(), at_);
    return other ? std::get_if<Code>(other) : nullptr;
  }
  const plan::ElementwiseCode* elementwise() const { return plan::elementwise_code(program(), at_); }

 private:
  TestGraph t_;
  std::unique_ptr<Planned> planned_;
  uint32_t at_ = 0;
};

Tensor numbers(std::vector<int64_t> values, Dims dims = {}) {
  if (dims.empty()) dims = {static_cast<int64_t>(values.size())};
  Tensor tensor = Tensor::allocate(ElementType::kInt64, dims).value();
  std::memcpy(tensor.mutable_raw(), values.data(), tensor.byte_size());
  return tensor;
}

Tensor reals(std::vector<float> values, Dims dims) {
  Tensor tensor = Tensor::allocate(ElementType::kFloat, std::move(dims)).value();
  std::memcpy(tensor.mutable_raw(), values.data(), tensor.byte_size());
  return tensor;
}

// Runs the kernel on elements that all differ, and checks its results against the code.
void expect_moves(const OneKernel& of) {
  const auto* code = of.code<plan::MoveCode>();
  ASSERT_NE(code, nullptr);
  const KernelCall& call = of.call();
  std::vector<void*> slots(of.program().slots.size());
  std::vector<std::vector<uint32_t>> memory;
  memory.reserve(call.operands.size());
  for (const uint32_t s : call.operands) {
    const plan::Slot& slot = of.program().slots[s];
    slots[s] = slot.storage == plan::Storage::kConstant ? const_cast<void*>(slot.constant.raw()) : nullptr;
    if (slots[s] || slot.storage == plan::Storage::kNull) continue;
    slots[s] = memory.emplace_back(size_t{4096}).data();
  }
  std::vector<uint32_t> all;
  for (const auto& [slot, count] : code->inputs) {
    auto* elements = static_cast<uint32_t*>(slots[slot]);
    const bool is_constant = of.program().slots[slot].storage == plan::Storage::kConstant;
    for (int64_t i = 0; i < count; ++i) {
      if (!is_constant) elements[i] = static_cast<uint32_t>(1000 + i);
      all.push_back(elements[i]);
    }
  }
  ASSERT_EQ(call.kernel.run(call.kernel.state, slots.data(), call.operands.data()), 0u);
  ASSERT_EQ(code->outputs.size(), call.outputs);
  for (const auto& [slot, from] : code->outputs) {
    for (size_t i = 0; i < from.size(); ++i) {
      const uint64_t said =
          from[i] >= 0 ? all[static_cast<size_t>(from[i])] : code->constants[static_cast<size_t>(-1 - from[i])];
      ASSERT_EQ(static_cast<const uint32_t*>(slots[slot])[i], said) << "element " << i;
    }
  }
}

ir::Attribute integer(const char* name, int64_t value) {
  return ir::Attribute::of(name, value);
}

TEST(KernelCode, MovesByStrides) {
  expect_moves({"Transpose", {}});
  expect_moves({"Slice", {numbers({3, 1}), numbers({0, 6}), numbers({0, 1}), numbers({-1, 2})}});
  expect_moves({"Split", {numbers({2, 4})}, {integer("axis", 1)}, 2});
  expect_moves({"Expand", {numbers({2, 4, 6})}});
  expect_moves({"Tile", {numbers({2, 3})}});
  expect_moves({"Concat", {}, {integer("axis", 1)}, 1, 2});  // an operand twice
}

TEST(KernelCode, MovesByConstantPositions) {
  expect_moves({"Gather", {numbers({5, 0, -1})}, {integer("axis", 1)}});
  expect_moves({"Gather", {numbers({3, 1, 2, 0}, {2, 2})}});
  expect_moves({"GatherElements", {numbers({1, 0, 3, -2}, {1, 4})}});
  expect_moves({"GatherElements", {numbers({1, -1, 3, 0}, {2, 2})}, {integer("axis", 1)}});
  expect_moves({"GatherND", {numbers({3, 5, 0, -1}, {2, 2})}});
  expect_moves({"GatherND", {numbers({5, 0, 2, -1}, {4, 1})}, {integer("batch_dims", 1)}});
  for (const int64_t batch : {0, 1}) {
    const Tensor lengths = batch == 0 ? numbers({6, 0, 3, 2}) : numbers({4, 0, 3, 2, 1, 4});
    expect_moves({"ReverseSequence", {lengths}, {integer("batch_axis", batch), integer("time_axis", 1 - batch)}});
  }
}

TEST(KernelCode, MovesBesideWhatNeverChanges) {
  for (const char* mode : {"constant", "edge", "reflect", "wrap"}) {
    SCOPED_TRACE(mode);
    expect_moves({"Pad", {numbers({1, 2, 0, -1})}, {ir::Attribute::of("mode", std::string(mode))}});
  }
  expect_moves({"Pad", {numbers({0, 1, 2, 1}), reals({7}, {})}});
  expect_moves({"CenterCropPad", {numbers({7, 3})}});
  for (const int64_t upper : {0, 1}) {
    for (const int64_t k : {-2, 0, 3}) expect_moves({"Trilu", {numbers({k}, {1})}, {integer("upper", upper)}});
  }
}

// A position out of range is an error of the iteration that reaches it, which the kernel reports.
TEST(KernelCode, PositionsOutsideAreLeftToTheKernel) {
  EXPECT_EQ(OneKernel("Gather", {numbers({6})}, {integer("axis", 1)}).code<plan::MoveCode>(), nullptr);
  EXPECT_EQ(OneKernel("ReverseSequence", {numbers({7, 0, 3, 2})}, {integer("batch_axis", 0), integer("time_axis", 1)})
                .code<plan::MoveCode>(),
            nullptr);
}

TEST(KernelCode, LongResultsAreNoLists) {
  const OneKernel of("Tile", {numbers({20, 10})});
  const auto* code = of.code<plan::MoveCode>();
  ASSERT_NE(code, nullptr);
  EXPECT_FALSE(code->is_listed);
  EXPECT_FALSE(code->regions.empty());
}

TEST(KernelCode, AProductIsKeptWithItsPackedMatrix) {
  const OneKernel of("MatMul", {reals(std::vector<float>(54, 1), {6, 9})});
  const auto* code = of.code<plan::ProductCode>();
  ASSERT_NE(code, nullptr);
  EXPECT_EQ(code->shape.m, 4);
  EXPECT_EQ(code->shape.n, 9);
  EXPECT_EQ(code->shape.k, 6);
  EXPECT_EQ(code->panels.rows, 6);
  EXPECT_GT(code->panels.columns, 0);
  EXPECT_NE(of.call().code->packed, nullptr);
}

TEST(KernelCode, ReductionsAndExtremes) {
  const OneKernel sum("ReduceSum", {numbers({1})});
  ASSERT_NE(sum.code<plan::ReductionCode>(), nullptr);
  EXPECT_FALSE(sum.code<plan::ReductionCode>()->columns);
  const OneKernel greatest("ArgMax", {}, {integer("axis", 1)});
  ASSERT_NE(greatest.code<plan::ArgReductionCode>(), nullptr);
  EXPECT_EQ(greatest.code<plan::ArgReductionCode>()->n, 6);
  EXPECT_TRUE(greatest.code<plan::ArgReductionCode>()->greatest);
}

TEST(KernelCode, GathersByIndicesOfTheRun) {
  TestGraph t({int64s({}), Type::tensor(ElementType::kUint8, Shape{Dim(4), Dim(6)})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  auto* column = t->call("Gather", {body[2], body[0]}, {integer("axis", 1)});
  const auto after = t.end_loop({t->call("Add", {body[2], t->call("Unsqueeze", {column, t->constant(numbers({1}))})})});
  t->set_output(0, after[0]);
  const auto planned = plan_of(t, false);
  const plan::GatherCode* found = nullptr;
  for (uint32_t pc = 0; pc < planned->program->code.size(); ++pc) {
    const plan::InstructionCode* other = plan::other_code(*planned->program, pc);
    if (other && std::get_if<plan::GatherCode>(other)) found = std::get_if<plan::GatherCode>(other);
  }
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->outer, 4);
  EXPECT_EQ(found->n, 6);
  EXPECT_EQ(found->row, 1);
  EXPECT_EQ(found->count, 1);
}

TEST(KernelCode, OneElementwiseNodeIsAStep) {
  const OneKernel of("Mul", {reals({2}, {})});
  ASSERT_NE(of.elementwise(), nullptr);
  EXPECT_EQ(of.elementwise()->count, 24);
  ASSERT_EQ(of.elementwise()->steps.size(), 1u);
  EXPECT_EQ(of.elementwise()->steps[0].op, kernels::ElementwiseOp::kMul);
  EXPECT_EQ(of.elementwise()->inputs[1].broadcast, plan::ElementwiseCode::Broadcast::kScalar);
}

// Instructions that run once get no code.
TEST(KernelCode, NothingIsKeptOutsideOfLoops) {
  TestGraph t({floats({4, 6})}, 1);
  t->set_output(0, t->call("Transpose", {t.in(0)}));
  const auto planned = plan_of(t, false);
  for (const KernelCall& call : planned->program->kernels) EXPECT_EQ(call.code, nullptr);
}

}  // namespace
}  // namespace treadle::testing_support
