// Many threads, several sessions, one thread pool. Meant for the thread sanitizer.

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "support/model_bytes.h"
#include "treadle/treadle.h"

namespace {

using namespace treadle::onnx_bytes;  // NOLINT(google-build-using-namespace): builders of small models

// y = relu(x x) for square x of any size, and iterations of a loop that adds it up.
std::string model() {
  const auto body = graph({.nodes = {node("Add", {"s", "h"}, {"s_out"}), node("Identity", {"c"}, {"c_out"})},
                           .inputs = {value("i", 7, {}), value("c", 9, {}), value("s", 1, {"n", "n"})},
                           .outputs = {value("c_out", 9, {}), value("s_out", 1, {"n", "n"})}});
  return model_bytes(graph({.nodes = {node("MatMul", {"x", "x"}, {"g"}), node("Relu", {"g"}, {"h"}),
                                      node("Loop", {"m", "", "h"}, {"y"}, {graph_attribute("body", body)})},
                            .inputs = {value("x", 1, {"n", "n"}), value("m", 7, {})},
                            .outputs = {value("y", 1, {"n", "n"})}}));
}

treadle_session* open(const char* threads, const std::string& bytes = model()) {
  treadle_options* options = nullptr;
  treadle_session* session = nullptr;
  EXPECT_EQ(treadle_options_create(&options), nullptr);
  EXPECT_EQ(treadle_options_set(options, "threads", threads), nullptr);
  EXPECT_EQ(treadle_session_from_bytes(bytes.data(), bytes.size(), nullptr, options, &session), nullptr);
  treadle_options_free(options);
  return session;
}

// x = 1 everywhere: y = (1 + iterations) n.
bool run(const treadle_session* session, int64_t n, int64_t iterations, const treadle_run_options* options = nullptr) {
  const int64_t dims[] = {n, n};
  treadle_value* values[2] = {};
  treadle_tensor_create(1, dims, 2, &values[0]);
  treadle_tensor_create(7, nullptr, 0, &values[1]);
  std::fill_n(static_cast<float*>(treadle_tensor_mutable_data(values[0])), n * n, 1.0F);
  *static_cast<int64_t*>(treadle_tensor_mutable_data(values[1])) = iterations;
  constexpr const char* kNames[] = {"x", "m"};
  treadle_value* output = nullptr;
  treadle_status* failed = treadle_session_run(session, options, kNames, values, 2, nullptr, 0, &output);
  bool right = failed == nullptr;
  if (right) {
    const auto* y = static_cast<const float*>(treadle_tensor_data(output));
    const auto expected = static_cast<float>((1 + iterations) * n);
    for (int64_t i = 0; i < n * n; ++i) right = right && y[i] == expected;
  }
  treadle_status_free(failed);
  treadle_value_free(output);
  for (treadle_value* value : values) treadle_value_free(value);
  return right;
}

template <class Fn>
void in_threads(int count, Fn&& fn) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(count));
  for (int t = 0; t < count; ++t) threads.emplace_back([&fn, t] { fn(t); });
  for (std::thread& thread : threads) thread.join();
}

TEST(Concurrency, FirstRunsOfDifferentSizesAtOnce) {
  for (int round = 0; round < 5; ++round) {
    treadle_session* session = open("1");
    std::atomic<int> wrong{0};
    in_threads(6, [&](int t) {
      for (int i = 0; i < 8; ++i) wrong += run(session, 1 + (t + i) % 4, i % 3) ? 0 : 1;
    });
    EXPECT_EQ(wrong, 0);
    EXPECT_LE(treadle_session_counters(session).plans, 2);
    EXPECT_EQ(treadle_session_counters(session).runs, 48);
    treadle_session_free(session);
  }
}

TEST(Concurrency, SessionsWithThreadsRunAtOnce) {
  treadle_session* sessions[] = {open("1"), open("2"), open("4")};
  std::atomic<int> wrong{0};
  in_threads(6, [&](int t) {
    for (int i = 0; i < 6; ++i) wrong += run(sessions[(t + i) % 3], 150 + 10 * (i % 3), 2) ? 0 : 1;
  });
  EXPECT_EQ(wrong, 0);
  for (treadle_session* session : sessions) treadle_session_free(session);
}

TEST(Concurrency, CancellingOneRunLeavesTheOthersAlone) {
  treadle_session* session = open("3");
  treadle_run_options* options = nullptr;
  ASSERT_EQ(treadle_run_options_create(&options), nullptr);
  std::atomic<int> wrong{0}, cancelled{0};
  in_threads(4, [&](int t) {
    if (t == 0) {
      for (int i = 0; i < 3; ++i) {
        std::thread later([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          treadle_run_options_cancel(options, true);
        });
        cancelled += run(session, 64, INT64_MAX, options) ? 0 : 1;
        later.join();
        treadle_run_options_cancel(options, false);
      }
    } else {
      for (int i = 0; i < 10; ++i) wrong += run(session, 100 + t, 3) ? 0 : 1;
    }
  });
  EXPECT_EQ(cancelled, 3);
  EXPECT_EQ(wrong, 0);
  treadle_run_options_free(options);
  treadle_session_free(session);
}

// x = 1: y = 1, by nodes that take long to plan.
std::string long_model() {
  std::vector<treadle::ProtoBytes> nodes;
  std::string before = "x";
  for (int i = 0; i < 3000; ++i) {
    std::string after = "v" + std::to_string(i);
    nodes.push_back(node(i % 2 ? "Sqrt" : "Abs", {before}, {after}));
    before = std::move(after);
  }
  nodes.push_back(node("Relu", {before}, {"y"}));
  return model_bytes(graph({.nodes = nodes, .inputs = {value("x", 1, {"n"})}, .outputs = {value("y", 1, {"n"})}}));
}

bool run_long(const treadle_session* session, int64_t n) {
  treadle_value *x = nullptr, *y = nullptr;
  treadle_tensor_create(1, &n, 1, &x);
  std::fill_n(static_cast<float*>(treadle_tensor_mutable_data(x)), n, 1.0F);
  constexpr const char* kName = "x";
  treadle_status* failed = treadle_session_run(session, nullptr, &kName, &x, 1, nullptr, 0, &y);
  const bool right = failed == nullptr && *static_cast<const float*>(treadle_tensor_data(y)) == 1;
  treadle_status_free(failed);
  treadle_value_free(x);
  treadle_value_free(y);
  return right;
}

// Calls _exit() of a forked process past the thread sanitizer, which would wait for a thread of the parent that has
// just ended.
[[noreturn]] void leave(int status) {
  syscall(SYS_exit_group, status);
  _exit(status);
}

TEST(Concurrency, AForkedChildCanPlanWhileItsParentWasPlanning) {
  for (int delay_ms : {1, 4, 16}) {
    treadle_session* session = open("1", long_model());
    std::thread planning([&] { run_long(session, 5); });
    std::this_thread::sleep_for(std::chrono::milliseconds(delay_ms));
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);  // ends a child that hangs
      leave(run_long(session, 7) ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    planning.join();
    treadle_session_free(session);
  }
}

}  // namespace
