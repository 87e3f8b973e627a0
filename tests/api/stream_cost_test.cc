// The costs of a push besides computing: no memory, no lock, no system call, no compilation. And which concurrent calls
// are refused.

#include <gtest/gtest.h>

#if defined(__linux__)
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <array>
#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/call_cost.h"
#include "support/own_process.h"
#include "treadle/treadle.h"

namespace {

using treadle::test::CallCost;
using treadle::test::cost_of;

constexpr const char* kHeader = "<ir_version: 9, opset_import: [\"\" : 20]>\n";

// A cell that the caller steps.
constexpr const char* kCell = R"(
cell (float[1, 16] x, float[1, 16] h, float[16, 16] w) => (float[1, 16] y, float[1, 16] hN) {
  a = MatMul (x, w)
  b = Add (a, h)
  hN = Tanh (b)
  y = Relu (hN)
})";

// Windows of 4 samples behind 2 of context; an output that is stacked.
constexpr const char* kWindows = R"(
windows (float[1, 6] x, float[1, 6] s) => (float[1, 1] level, float[1, 6] sN) <int64[1] one = {1}> {
  sN = Add (s, x)
  level = ReduceSum (sN, one)
})";

// Over time: a causal convolution, a recurrence, and the recurrence's state.
constexpr const char* kOverTime = R"(
signal (float[1, 4, T] x) => (float[T, 1, 1, 8] y, float[1, 1, 8] last)
<int64[3] kernel = {4, 4, 3}, int64[3] ws = {1, 24, 4}, int64[3] rs = {1, 24, 8}> {
  k = ConstantOfShape <value: tensor = float {0.1}> (kernel)
  w = ConstantOfShape <value: tensor = float {0.2}> (ws)
  r = ConstantOfShape <value: tensor = float {0.05}> (rs)
  c = Conv <pads = [2, 0]> (x, k)
  t = Transpose <perm = [2, 0, 1]> (c)
  y, last = GRU <hidden_size = 8> (t, w, r)
})";

// Over time, two samples for each frame.
constexpr const char* kStrided = R"(
signal (float[1, 4, T] x) => (float[F, 1, 1, 8] y, float[1, 1, 8] last)
<int64[3] kernel = {4, 4, 3}, int64[3] ws = {1, 24, 4}, int64[3] rs = {1, 24, 8}> {
  k = ConstantOfShape <value: tensor = float {0.1}> (kernel)
  w = ConstantOfShape <value: tensor = float {0.2}> (ws)
  r = ConstantOfShape <value: tensor = float {0.05}> (rs)
  c = Conv <pads = [2, 0], strides = [2]> (x, k)
  t = Transpose <perm = [2, 0, 1]> (c)
  y, last = GRU <hidden_size = 8> (t, w, r)
})";

// Over time: a loop whose body has two outputs.
constexpr const char* kScan = R"(
signal (float[T, 3] x, float[3] s0) => (float[3] s, float[T, 3] y) {
  s, y = Scan <num_scan_inputs = 1, body = step (float[3] s_in, float[3] xi) => (float[3] s_out, float[3] yi) {
    a = Add (s_in, xi)
    s_out = Tanh (a)
    yi = Mul (s_out, s_out)
  }> (s0, x)
})";

void expect_ok(treadle_status* status) {
  ASSERT_EQ(status, nullptr) << treadle_status_text(status);
}

treadle_value* numbers(const std::vector<int64_t>& dims) {
  treadle_value* value = nullptr;
  expect_ok(treadle_tensor_create(1, dims.data(), dims.size(), &value));
  auto* data = static_cast<float*>(treadle_tensor_mutable_data(value));
  for (int64_t i = 0; i < treadle_tensor_count(value); ++i) data[i] = 0.1F * static_cast<float>(i % 7) - 0.2F;
  return value;
}

// A session of one thread and a stream over it, with the inputs and outputs of a push.
class Pushing {
 public:
  struct Setting {
    const char* model;
    std::vector<int64_t> dims;                // of a chunk
    int64_t axis = -1, hop = 0, context = 0;  // axis -1: each push gives x
    const char* bound = nullptr;
    std::vector<int64_t> bound_dims = {};
  };

  explicit Pushing(const Setting& setting, const char* jit = "off") {
    treadle_options* options = nullptr;
    expect_ok(treadle_options_create(&options));
    expect_ok(treadle_options_set(options, "threads", "1"));
    expect_ok(treadle_options_set(options, "jit", jit));
    const std::string text = std::string(kHeader) + setting.model;
    expect_ok(treadle_session_from_bytes(text.data(), text.size(), nullptr, options, &session_));
    treadle_options_free(options);
    treadle_stream_options* roles = nullptr;
    expect_ok(treadle_stream_options_create(&roles));
    if (setting.axis >= 0) expect_ok(treadle_stream_options_time(roles, "x", setting.axis));
    treadle_stream_options_hop(roles, setting.hop, setting.context);
    if (setting.bound) {
      treadle_value* bound = numbers(setting.bound_dims);
      expect_ok(treadle_stream_options_bind(roles, setting.bound, bound));
      treadle_value_free(bound);
    }
    expect_ok(treadle_stream_create(session_, roles, &stream_));
    treadle_stream_options_free(roles);
    chunk_ = numbers(setting.dims);
    if (setting.axis >= 0) {
      samples_ = setting.dims[static_cast<size_t>(setting.axis)];
      expect_ok(treadle_stream_warm(stream_, &samples_, 1));
    }
  }
  ~Pushing() {
    for (treadle_value* output : outputs_) treadle_value_free(output);
    treadle_value_free(chunk_);
    treadle_stream_free(stream_);
    treadle_session_free(session_);
  }
  Pushing(const Pushing&) = delete;
  Pushing& operator=(const Pushing&) = delete;

  treadle_status* push() {
    const char* name = "x";
    return treadle_stream_push(stream_, nullptr, &name, &chunk_, 1, outputs_.data(), nullptr);
  }
  void bind() {
    const char* name = "x";
    expect_ok(treadle_stream_bind(stream_, nullptr, &name, &chunk_, 1, outputs_.data()));
  }
  treadle_status* step() { return treadle_stream_step(stream_); }
  treadle_session* session() const { return session_; }
  treadle_stream* stream() const { return stream_; }
  int64_t samples() const { return samples_; }  // of a push; 0: its chunk has none
  const float* output() const { return static_cast<const float*>(treadle_tensor_data(outputs_[0])); }
  std::vector<float> results() const {
    std::vector<float> all;
    for (const treadle_value* output : outputs_) {
      if (!output) continue;
      const auto* data = static_cast<const float*>(treadle_tensor_data(output));
      all.insert(all.end(), data, data + treadle_tensor_count(output));
    }
    return all;
  }
  void forget_outputs() {
    for (treadle_value*& output : outputs_) treadle_value_free(std::exchange(output, nullptr));
  }

 private:
  treadle_session* session_ = nullptr;
  treadle_stream* stream_ = nullptr;
  treadle_value* chunk_ = nullptr;
  int64_t samples_ = 0;
  std::array<treadle_value*, 2> outputs_{};
};

const std::vector<Pushing::Setting>& settings() {
  static const std::vector<Pushing::Setting> all = {{kCell, {1, 16}, -1, 0, 0, "w", {16, 16}},
                                                    {kWindows, {1, 4}, 1, 4, 2},
                                                    {kWindows, {1, 1}, 1, 4, 2},
                                                    {kWindows, {1, 3}, 1, 4, 2},
                                                    {kWindows, {1, 8}, 1, 4, 2},
                                                    {kWindows, {1, 9}, 1, 4, 2},
                                                    {kStrided, {1, 4, 1}, 2},
                                                    {kStrided, {1, 4, 3}, 2},
                                                    {kStrided, {1, 4, 8}, 2},
                                                    {kOverTime, {1, 4, 1}, 2},
                                                    {kOverTime, {1, 4, 160}, 2},
                                                    {kScan, {5, 3}, 0, 0, 0, "s0", {3}}};
  return all;
}

class StreamCost : public ::testing::TestWithParam<size_t> {};

TEST_P(StreamCost, APushTakesNoMemoryAndNoLock) {
  for (const char* jit : {"off", "auto", "always"}) {
    Pushing pushing(settings()[GetParam()], jit);
    std::set<const float*> places;
    for (int i = 0; i < 12; ++i) {  // begins the stream, and makes outputs of all sizes
      expect_ok(pushing.push());
      places.insert(pushing.output());
    }
    treadle_status* failure = nullptr;
    const CallCost cost = cost_of([&] {
      for (int i = 0; i < 200 && !failure; ++i) failure = pushing.push();
    });
    expect_ok(failure);
    char* why = nullptr;
    EXPECT_TRUE(treadle_stream_is_realtime(pushing.stream(), pushing.samples(), &why)) << jit << ": " << why;
    EXPECT_EQ(cost.allocations, 0) << jit;
    EXPECT_EQ(cost.locks, 0) << jit;
    EXPECT_EQ(places.count(pushing.output()), 1U);
  }
}

TEST_P(StreamCost, AStepTakesNoMemoryAndNoLock) {
  for (const char* jit : {"off", "always"}) {
    Pushing pushing(settings()[GetParam()], jit);
    pushing.bind();
    for (int i = 0; i < 12; ++i) expect_ok(pushing.step());  // begins the stream, and makes outputs of all sizes
    treadle_status* failure = nullptr;
    const CallCost cost = cost_of([&] {
      for (int i = 0; i < 200 && !failure; ++i) failure = pushing.step();
    });
    expect_ok(failure);
    EXPECT_EQ(cost.allocations, 0) << jit;
    EXPECT_EQ(cost.locks, 0) << jit;
  }
}

TEST_P(StreamCost, OutputsWrittenInPlaceEqualFreshOnes) {
  Pushing in_place(settings()[GetParam()]), fresh(settings()[GetParam()]);
  for (int i = 0; i < 20; ++i) {
    fresh.forget_outputs();
    expect_ok(in_place.push());
    expect_ok(fresh.push());
    EXPECT_EQ(in_place.results(), fresh.results()) << i;
  }
}

TEST_P(StreamCost, NothingIsPlannedOrCompiledOnceItIsWarm) {
  if (settings()[GetParam()].axis < 0) GTEST_SKIP() << "its chunk has no samples to warm up for";
  Pushing pushing(settings()[GetParam()], "always");
  const treadle_counters before = treadle_session_counters(pushing.session());
  for (int i = 0; i < 50; ++i) expect_ok(pushing.push());
  const treadle_counters after = treadle_session_counters(pushing.session());
  EXPECT_EQ(after.plans, before.plans);
  EXPECT_EQ(after.compilations, before.compilations);
}

#if defined(__linux__) && TREADLE_COUNTS_CALLS

constexpr int kNoSeccomp = 77;
constexpr const char* kClosed = "TREADLE_TEST_WITHOUT_SYSTEM_CALLS";

// From here on any system call except exit kills the process.
void close_the_system() {
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(kNoSeccomp);
}

// The exit of a new process, without threads of other tests, that runs one test.
int status_of_test(const std::string& name) {
  const pid_t child = fork();
  if (child == 0) {
    setenv(kClosed, "1", 1);
    treadle::test::become_test(name);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

bool has_no_seccomp(int status) {
  return WIFEXITED(status) && WEXITSTATUS(status) == kNoSeccomp;
}

TEST_P(StreamCost, APushMakesNoSystemCall) {
  if (!std::getenv(kClosed)) {
    const int status = status_of_test("Models/StreamCost.APushMakesNoSystemCall/" + std::to_string(GetParam()));
    if (has_no_seccomp(status)) GTEST_SKIP() << "the system has no seccomp";
    EXPECT_EQ(status, 0);
    return;
  }
  Pushing pushing(settings()[GetParam()], "always");
  for (int i = 0; i < 12; ++i) expect_ok(pushing.push());
  pushing.bind();
  for (int i = 0; i < 12; ++i) expect_ok(pushing.step());
  close_the_system();
  for (int i = 0; i < 200; ++i) {
    if (pushing.push()) syscall(SYS_exit, 1);
    if (pushing.step()) syscall(SYS_exit, 2);
  }
  syscall(SYS_exit, 0);
}

TEST(StreamTurns, ASystemCallWouldBeSeen) {
  if (!std::getenv(kClosed)) {
    const int status = status_of_test("StreamTurns.ASystemCallWouldBeSeen");
    if (has_no_seccomp(status)) GTEST_SKIP() << "the system has no seccomp";
    EXPECT_TRUE(WIFSIGNALED(status));
    return;
  }
  close_the_system();
  syscall(SYS_getppid);
  syscall(SYS_exit, 0);
}

#endif

INSTANTIATE_TEST_SUITE_P(Models, StreamCost, ::testing::Range(size_t{0}, settings().size()));

// Once: holds the push that asks until the other thread has been refused.
bool hold(void* context) {
  auto* state = static_cast<std::atomic<int>*>(context);
  int expected = 0;
  if (!state->compare_exchange_strong(expected, 1)) return false;
  while (state->load() != 2) std::this_thread::yield();
  return false;
}

TEST(StreamTurns, ASecondThreadIsSentAway) {
  Pushing pushing({kScan, {200'000, 3}, 0, 0, 0, "s0", {3}});
  expect_ok(pushing.push());
  std::atomic<int> state{0};
  treadle_run_options* options = nullptr;
  expect_ok(treadle_run_options_create(&options));
  treadle_run_options_set_interrupt(options, hold, &state);
  std::thread first([&] {
    const char* name = "x";
    treadle_value* chunk = numbers({3'000'000, 3});
    std::array<treadle_value*, 2> outputs{};
    expect_ok(treadle_stream_push(pushing.stream(), options, &name, &chunk, 1, outputs.data(), nullptr));
    for (treadle_value* output : outputs) treadle_value_free(output);
    treadle_value_free(chunk);
  });
  while (state.load() != 1) std::this_thread::yield();
  treadle_status* refused = pushing.push();
  EXPECT_EQ(treadle_status_code(refused), TREADLE_BUSY);
  EXPECT_STREQ(treadle_code_name(treadle_status_code(refused)), "busy");
  treadle_status_free(refused);
  EXPECT_EQ(treadle_status_code(treadle_stream_reset(pushing.stream())), TREADLE_BUSY);
  state.store(2);
  first.join();
  expect_ok(pushing.push());
  treadle_run_options_free(options);
}

}  // namespace
