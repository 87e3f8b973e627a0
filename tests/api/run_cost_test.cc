// What a planned run costs besides computing: no memory beyond the outputs it hands out (none with outputs given to
// it), no lock. Counted by standing in front of the allocator and of pthread_mutex_lock for this process.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "support/model_bytes.h"
#include "treadle/treadle.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TREADLE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TREADLE_SANITIZED 1
#endif
#endif

namespace {

// Only the thread that counts is counted.
thread_local bool counting = false;
std::atomic<int64_t> allocations{0}, locks{0};

// Sanitizers stand in front of the allocator themselves.
[[maybe_unused]] void count_allocation() {
  if (counting) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#if !defined(TREADLE_SANITIZED) && defined(__GLIBC__)

// Seen from the C++ library as well, whose operator new asks for memory there.
#pragma GCC visibility push(default)
extern "C" {

void* __libc_malloc(size_t bytes);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, size_t bytes);       // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT(bugprone-reserved-identifier)

// operator new comes through here as well.
void* malloc(size_t bytes) {
  count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  count_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  count_allocation();
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto real = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (counting) locks.fetch_add(1, std::memory_order_relaxed);
  return real(mutex);
}

}  // extern "C"
#pragma GCC visibility pop

#endif

namespace {

using namespace treadle::onnx_bytes;  // NOLINT(google-build-using-namespace): builders of small models

struct Cost {
  int64_t allocations, locks;
};

template <class Fn>
Cost cost_of(Fn&& fn) {
  allocations = locks = 0;
  counting = true;
  fn();
  counting = false;
  return {allocations.load(), locks.load()};
}

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
#if defined(TREADLE_SANITIZED) || !defined(__GLIBC__)
  GTEST_SKIP() << "the sanitizer's allocator cannot be stood in front of";
#endif
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  void* volatile kept = nullptr;  // or the compiler leaves out what it sees no use of
  const Cost cost = cost_of([&] {
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
  const Cost cost = cost_of([&] {
    for (int i = 0; i < 100; ++i) run(&output);
  });
  EXPECT_EQ(cost.allocations, 0);
  EXPECT_EQ(cost.locks, 0);
  EXPECT_EQ(treadle_tensor_data(output), data);
  treadle_value_free(output);
}

TEST_F(RunCost, APlannedRunTakesMemoryForItsOutputsOnly) {
  treadle_value* output = nullptr;
  for (int i = 0; i < 3; ++i) {
    run(&output);
    treadle_value_free(std::exchange(output, nullptr));
  }
  const Cost cost = cost_of([&] {
    for (int i = 0; i < 100; ++i) {
      run(&output);
      treadle_value_free(std::exchange(output, nullptr));
    }
  });
#if !defined(TREADLE_SANITIZED) && defined(__GLIBC__)
  // The handle, and the tensor's elements together with what counts the references to them.
  EXPECT_EQ(cost.allocations, 200);
#endif
  EXPECT_EQ(cost.locks, 0);
}

}  // namespace
