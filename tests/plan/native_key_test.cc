#include "plan/native_key.h"

#include <gtest/gtest.h>

#include "support/test_graph.h"

namespace treadle::testing_support {
namespace {

using plan::native_key;
using plan::NativeRequest;

// s = op(s + weights) in each iteration; the weights are the same number everywhere.
struct Made {
  std::unique_ptr<TestGraph> graph;
  std::unique_ptr<Planned> planned;
  NativeRequest request;

  Made(const char* op, int64_t count, float weight, int64_t loop_count = 1) {
    graph = std::make_unique<TestGraph>(std::vector<Type>{int64s({}), floats({count})}, 1);
    TestGraph& t = *graph;
    ir::Value* state = t.in(1);
    for (int64_t i = 0; i < loop_count; ++i) {
      Tensor weights = *Tensor::allocate(ElementType::kFloat, {count});
      std::fill_n(weights.mutable_data<float>(), count, weight);
      const auto body = t.begin_loop(t.in(0), {state});
      state = t.end_loop({t->call(op, {t->call("Add", {body[2], t->constant(weights)})})})[0];
    }
    t->set_output(0, state);
    planned = plan_of(t);
    request = plan::describe_loop(*planned->program, 0);
    request.isa = Isa::kAvx2;
    request.counter_stride = 64;
  }
  Digest key() const { return native_key(request); }
};

TEST(NativeKey, IsThatOfTheLoopNotOfItsAddresses) {
  const Made one("Tanh", 8, 0.5f), same("Tanh", 8, 0.5f);
  EXPECT_EQ(one.key(), same.key());
  EXPECT_EQ(one.key(), one.key());
}

TEST(NativeKey, DependsOnWhatTheLoopComputes) {
  const Made one("Tanh", 8, 0.5f);
  EXPECT_NE(one.key(), Made("Sigmoid", 8, 0.5f).key());
  EXPECT_NE(one.key(), Made("Tanh", 9, 0.5f).key());
}

TEST(NativeKey, HoldsTheContentsOfSmallConstantsAlone) {
  EXPECT_NE(Made("Tanh", 8, 0.5f).key(), Made("Tanh", 8, 0.25f).key());
  const auto many = static_cast<int64_t>(plan::kMaxLiteralBytes);
  EXPECT_EQ(Made("Tanh", many, 0.5f).key(), Made("Tanh", many, 0.25f).key());
}

TEST(NativeKey, DependsOnMachineAndOptions) {
  Made made("Tanh", 8, 0.5f);
  const Digest key = made.key();
  EXPECT_EQ(native_key(made.request, processor_id()), key);
  EXPECT_NE(native_key(made.request, processor_id() + "1"), key);
  made.request.isa = Isa::kAvx512;
  EXPECT_NE(made.key(), key);
  made.request.isa = Isa::kAvx2;
  made.request.counter_stride = 72;
  EXPECT_NE(made.key(), key);
}

TEST(NativeKey, DiffersBetweenTheLoopsOfAProgram) {
  Made made("Tanh", 8, 0.5f, 2);
  NativeRequest second = plan::describe_loop(*made.planned->program, 1);
  second.isa = made.request.isa;
  second.counter_stride = made.request.counter_stride;
  EXPECT_NE(native_key(second), made.key());
}

TEST(Processor, HasAName) {
  EXPECT_GT(processor_id().size(), 4u);
  EXPECT_EQ(processor_id(), processor_id());
}

}  // namespace
}  // namespace treadle::testing_support
