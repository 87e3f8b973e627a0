// Damages a program, one rule at a time, and checks the verifier's error.
#include "plan/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plan/kernel_code.h"
#include "plan/roles.h"
#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using plan::OpCode;
using plan::Program;
using testing::HasSubstr;

// Products before, inside of and behind a loop with a counter that is read, a state and rows; a row picked by the
// counter; a value of dynamic shape at the end.
class Damaged : public testing::Test {
 protected:
  Damaged() {
    auto* first = t_->call("MatMul", {t_.in(1), t_.in(2)});
    first->type = floats({1, 8});
    const auto body = t_.begin_loop(t_.in(0), {first}, 1);
    auto* row = t_->call("Gather", {t_.in(2), body[0]});
    auto* next = t_->call("MatMul", {t_->call("Add", {body[2], row}), t_.in(2)});
    const auto results = t_.end_loop({next, t_->call("Softmax", {next})});
    t_->set_output(0, t_->call("MatMul", {results[0], t_.in(2)}));
    t_->set_output(1, t_->call("NonZero", {results[0]}));
    planned_ = plan_of(t_, false);
    p_ = const_cast<Program*>(planned_->program.get());
  }

  uint32_t find(OpCode code, uint32_t from = 0) const {
    for (uint32_t at = from; at < p_->code.size(); ++at) {
      if (p_->code[at].code == code) return at;
    }
    ADD_FAILURE() << "no " << plan::info(code).name;
    return 0;
  }
  plan::KernelCall& kernel(uint32_t at) { return p_->kernels[p_->code[at].index]; }
  plan::Loop& loop() { return p_->loops[0]; }
  // An operand of a kernel, in its record and where it is bound.
  void set_operand(uint32_t at, size_t i, uint32_t slot) {
    kernel(at).operands[i] = slot;
    const_cast<uint32_t*>(p_->code[at].operands)[i] = slot;
  }
  uint32_t constant() {
    plan::Slot slot;
    slot.storage = plan::Storage::kConstant;
    slot.constant = Tensor::scalar<float>(ElementType::kFloat, 1);
    p_->slots.push_back(slot);
    return static_cast<uint32_t>(p_->slots.size() - 1);
  }
  std::string said() const { return verify(*p_).message(); }

  TestGraph t_{{int64s({}), floats({1, 8}), floats({8, 8})}, 2};
  std::unique_ptr<Planned> planned_;
  Program* p_ = nullptr;
};

TEST_F(Damaged, NotAtAll) {
  EXPECT_TRUE(plan::verify(*p_).ok());
}

TEST_F(Damaged, WhatNativeCodeIsTold) {
  uint32_t at = loop().first;
  while (!plan::elementwise_code(*p_, at)) ++at;
  plan::KernelCode code = *kernel(at).code;
  code.elementwise->inputs[0].slot = loop().states[0].final;
  kernel(at).code = std::make_shared<plan::KernelCode>(code);
  EXPECT_THAT(said(), HasSubstr("native code is told of s"));
}

TEST_F(Damaged, Indices) {
  const uint32_t at = find(OpCode::kKernel);
  p_->code[at].index = 99;
  EXPECT_THAT(said(), testing::StartsWith(fmt::format("instruction {} (kernel): index 99 of ", at)));
}

TEST_F(Damaged, Targets) {
  p_->code[loop().first].target = 1000;
  EXPECT_THAT(said(), HasSubstr("(loop): target 1000 is behind the end"));
  p_->code[loop().first].target = loop().first + 1;
  EXPECT_THAT(said(), HasSubstr("(loop): without iterations, it goes on inside the loop"));
}

TEST_F(Damaged, TheInstructionsOfALoop) {
  loop().last -= 1;
  EXPECT_THAT(said(), HasSubstr("does not end the loop"));
  loop().last += 1;
  loop().step.simple = !loop().step.simple;
  EXPECT_THAT(said(), HasSubstr("(next): it is not the back edge of the loop before it"));
}

TEST_F(Damaged, TheEnd) {
  p_->code.back().code = OpCode::kPoll;
  EXPECT_THAT(said(), HasSubstr("the last instruction is not the end of the program"));
}

TEST_F(Damaged, BoundKernels) {
  const uint32_t at = find(OpCode::kKernel);
  kernel(at).operands[0] = 0;
  EXPECT_THAT(said(), HasSubstr("its operands are not those of its record"));
  kernel(at).kernel.run = nullptr;
  EXPECT_THAT(said(), HasSubstr("it runs another kernel than its record says"));
}

TEST_F(Damaged, SlotsThatAreNotThere) {
  const uint32_t at = find(OpCode::kRow);
  p_->rows[0].index = 12345;
  EXPECT_THAT(said(), HasSubstr(fmt::format("instruction {} (row), index: s12345 is behind the last slot", at)));
}

TEST_F(Damaged, WhatMayNotBeWritten) {
  const uint32_t at = find(OpCode::kKernel);
  set_operand(at, kernel(at).inputs, constant());
  EXPECT_THAT(said(), HasSubstr(fmt::format("instruction {} (kernel), output: s", at)));
  EXPECT_THAT(said(), HasSubstr("is a constant, which nothing may write"));
  set_operand(at, kernel(at).inputs, p_->inputs[1].slot);
  EXPECT_THAT(said(), HasSubstr("is an input, which nothing may write"));
}

TEST_F(Damaged, WhereAPointerGoes) {
  p_->rows[0].to = loop().states[0].in;
  EXPECT_THAT(said(), HasSubstr("(row), to: "));
  EXPECT_THAT(said(), HasSubstr("is no pointer"));
}

TEST_F(Damaged, KernelsWriteNoHandles) {
  const uint32_t at = find(OpCode::kKernel), dynamic = find(OpCode::kCompute);
  set_operand(at, kernel(at).inputs, p_->dynamic[p_->code[dynamic].index].outputs[0]);
  EXPECT_THAT(said(), HasSubstr("(kernel), output: "));
  EXPECT_THAT(said(), HasSubstr("is a handle"));
}

TEST_F(Damaged, TheOrderOfWritingAndReading) {
  const uint32_t at = find(OpCode::kKernel);
  set_operand(at, 0, loop().states[0].final);
  EXPECT_THAT(said(), HasSubstr("is read before anything writes it"));
}

TEST_F(Damaged, Lifetimes) {
  const uint32_t s = loop().states[0].in;
  p_->slots[s].last = loop().first;
  EXPECT_THAT(said(), HasSubstr("lives from"));
}

TEST_F(Damaged, SizesOfWhatChangesPlaces) {
  p_->slots[loop().states[0].out].bytes *= 2;
  EXPECT_THAT(said(), HasSubstr("change places, but have 32 and 64 bytes"));
}

TEST_F(Damaged, SharedMemory) {
  p_->slots[loop().states[0].out].offset = p_->slots[loop().states[0].in].offset;
  EXPECT_THAT(said(), HasSubstr("are alive, and share memory"));
  p_->arena_bytes = 8;
  EXPECT_THAT(said(), HasSubstr("ends behind the arena, which has 8 bytes"));
}

// A product whose weights exceed the first-level cache, in a loop: it keeps the direction in which it reads them.
TEST(Kept, LivesFromTheFirstInstructionToTheLast) {
  TestGraph t({int64s({}), floats({1, 128})}, 1);
  std::mt19937 engine(3);
  auto* weights = t->constant(random_value(floats({128, 128}), engine).tensor());
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  t->set_output(0, t.end_loop({t->call("Softmax", {t->call("MatMul", {body[2], weights})})})[0]);
  const auto planned = plan_of(t, false);
  expect_same_as_reference(t, *planned, {{0, AnyValue(Tensor::scalar<int64_t>(ElementType::kInt64, 5))}});
  auto& p = const_cast<Program&>(*planned->program);
  const auto call = std::ranges::find(p.kernels, 1u, &plan::KernelCall::kept);
  ASSERT_NE(call, p.kernels.end());
  plan::Slot& kept = p.slots[call->operands.back()];
  EXPECT_EQ(kept.first, 0u);
  EXPECT_EQ(kept.last, p.code.size() - 1);
  kept.first = 1;
  EXPECT_THAT(verify(p).message(), HasSubstr("is kept, but lives from"));
  kept.storage = plan::Storage::kOutput;
  EXPECT_THAT(verify(p).message(), HasSubstr("is no memory of the arena"));
}

// The names that the table of opcodes gives.
TEST(OpCodes, AreListedByName) {
  TestGraph t({int64s({}), floats({8})}, 1);
  const auto body = t.begin_loop(t.in(0), {t.in(1)});
  t->set_output(0, t.end_loop({t->call("Softmax", {body[2]})})[0]);
  const std::string listing = plan::print(*plan_of(t, false)->program);
  for (const char* line : {" loop    0 Loop ", " kernel  Softmax ", " next    0 Loop ", " endloop 0 Loop ", " end\n"}) {
    EXPECT_THAT(listing, HasSubstr(line));
  }
}

}  // namespace
}  // namespace treadle::testing_support
