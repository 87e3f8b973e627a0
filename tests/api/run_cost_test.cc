// The costs of a planned run besides computing: it allocates only its outputs (nothing if outputs are given), and takes
// no lock.

#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "support/call_cost.h"
#include "support/model_bytes.h"
#include "treadle/treadle.h"

namespace {

using treadle::test::CallCost;
using treadle::test::cost_of;
using namespace treadle::onnx_bytes;  // NOLINT(google-build-using-namespace): builders of small models

// y = relu(x w), and a loop that adds y to itself m times.
std::string planned_model() {
  const auto body = graph({.nodes = {node("Add", {"s", "h"}, {"s_out"}), node("Identity", {"c"}, {"c_out"})},
                           .inputs = {value("i", 7, {}), value("c", 9, {}), value("s", 1, {"4", "4"})},
                           .outputs = {value("c_out", 9, {}), value("s_out", 1, {"4", "4"})}});
  return model_bytes(graph(
      {.nodes = {node("MatMul", {"x", "w"}, {"g"}), node("Relu", {"g"}, {"h"}),
                 node("Loop", {"m", "", "h"}, {"y"}, {graph_attribute("body", body)}), node("Softmax", {"y"}, {"z"})},
       .inputs = {value("x", 1, {"4", "4"}), value("w", 1, {"4", "4"}), value("m", 7, {})},
       .outputs = {value("z", 1, {"4", "4"})}}));
}

class RunCost : public ::testing::Test {
 protected:
  RunCost() {
    const std::string bytes = planned_model();
    EXPECT_EQ(treadle_session_from_bytes(bytes.data(), bytes.size(), nullptr, nullptr, &session_), nullptr);
    for (int k = 0; k < 2; ++k) {
      constexpr int64_t kDims[] = {4, 4};
      EXPECT_EQ(treadle_tensor_create(1, kDims, 2, &values_[k]), nullptr);
      for (int i = 0; i < 16; ++i)
        static_cast<float*>(treadle_tensor_mutable_data(values_[k]))[i] = 0.1F * static_cast<float>(i);
    }
    EXPECT_EQ(treadle_tensor_create(7, nullptr, 0, &values_[2]), nullptr);
    *static_cast<int64_t*>(treadle_tensor_mutable_data(values_[2])) = 100;
  }
  ~RunCost() override {
    for (treadle_value* value : values_) treadle_value_free(value);
    treadle_session_free(session_);
  }

  void run(treadle_value** output) {
    constexpr const char* kNames[] = {"x", "w", "m"};
    constexpr const char* kOutputs[] = {"z"};
    EXPECT_EQ(treadle_session_run(session_, nullptr, kNames, values_, 3, kOutputs, 1, output), nullptr);
  }

  treadle_session* session_ = nullptr;
  treadle_value* values_[3] = {};
};

TEST_F(RunCost, TheCountersCount) {
#if !TREADLE_COUNTS_CALLS
  GTEST_SKIP() << "the sanitizer's allocator cannot be stood in front of";
#endif
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  void* volatile kept = nullptr;  // keeps the compiler from removing the allocation
  const CallCost cost = cost_of([&] {
    kept = new int;
    delete static_cast<int*>(kept);
    kept = std::malloc(8);
    std::free(kept);
    kept = std::aligned_alloc(64, 64);
    std::free(kept);
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  });
  EXPECT_EQ(cost.allocations, 3);
  EXPECT_EQ(cost.locks, 1);
}

TEST_F(RunCost, APlannedRunIntoAGivenOutputTakesNoMemoryAndNoLock) {
  treadle_value* output = nullptr;
  for (int i = 0; i < 3; ++i) run(&output);  // plans, makes a context, and the output
  ASSERT_NE(output, nullptr);
  const void* data = treadle_tensor_data(output);
  const CallCost cost = cost_of([&] {
    for (int i = 0; i < 100; ++i) run(&output);
  });
  EXPECT_EQ(cost.allocations, 0);
  EXPECT_EQ(cost.locks, 0);
  EXPECT_EQ(treadle_tensor_data(output), data);
  treadle_value_free(output);
}

TEST_F(RunCost, ABoundRunTakesNoMemoryAndNoLock) {
  constexpr const char* kNames[] = {"x", "w", "m"};
  treadle_value* output = nullptr;
  treadle_bound* bound = nullptr;
  ASSERT_EQ(treadle_session_bind(session_, nullptr, kNames, values_, 3, nullptr, 0, &output, &bound), nullptr);
  const CallCost cost = cost_of([&] {
    for (int i = 0; i < 100; ++i) EXPECT_EQ(treadle_bound_run(bound), nullptr);
  });
  EXPECT_EQ(cost.allocations, 0);
  EXPECT_EQ(cost.locks, 0);
  treadle_bound_free(bound);
  treadle_value_free(output);
}

TEST_F(RunCost, APlannedRunTakesMemoryForItsOutputsOnly) {
  treadle_value* output = nullptr;
  for (int i = 0; i < 3; ++i) {
    run(&output);
    treadle_value_free(std::exchange(output, nullptr));
  }
  const CallCost cost = cost_of([&] {
    for (int i = 0; i < 100; ++i) {
      run(&output);
      treadle_value_free(std::exchange(output, nullptr));
    }
  });
#if TREADLE_COUNTS_CALLS
  // The handle, and the tensor's elements with their reference count.
  EXPECT_EQ(cost.allocations, 200);
#endif
  EXPECT_EQ(cost.locks, 0);
}

}  // namespace
