// Limits of loading and planning: time, memory, cancelling, interrupts; a thread that waits for another thread's plan.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/thread_pool.h"
#include "report/explain.h"
#include "session/planning_lock.h"
#include "session/session.h"
#include "stream/stream.h"

namespace treadle {
namespace {

using ::testing::HasSubstr;

constexpr std::string_view kHeader = "<ir_version: 10, opset_import: [\"\" : 21]>\n";

// Large products of constants, which take any amount of time.
std::string slow_to_fold(int products) {
  std::string nodes = "n = Constant<value_ints = [700, 700]>() a0 = ConstantOfShape(n) ";
  for (int i = 0; i < products; ++i) nodes += fmt::format("a{} = MatMul(a{}, a0) ", i + 1, i);
  return fmt::format("{}g () => (y) {{ {} y = Identity(a{}) }}", kHeader, nodes, products);
}

std::string many_branches(int count) {
  std::string nodes;
  for (int i = 0; i < count; ++i) {
    nodes += fmt::format(
        "v{1} = If(c) <then_branch = t{0} () => (p{0}) {{ p{0} = Erf(v{0}) }}, else_branch = e{0} () => (q{0}) "
        "{{ q{0} = Sin(v{0}) }}> ",
        i, i + 1);
  }
  return fmt::format("{}g (bool c, float[N] x) => (y) {{ v0 = Identity(x) {} y = Identity(v{}) }}", kHeader, nodes,
                     count);
}

Result<std::unique_ptr<Session>> load(const std::string& text, const SessionOptions& options) {
  return Session::from_bytes(std::as_bytes(std::span(text)), options);
}

Status status_of(const std::string& text, const SessionOptions& options) {
  auto session = load(text, options);
  return session.ok() ? Status() : std::move(session).status();
}

Status run(const Session& session, const RunOptions& options = {}) {
  const float numbers[] = {1, 2};
  const AnyValue c = Tensor::scalar<bool>(ElementType::kBool, true), x = Tensor::of_float(numbers);
  const std::vector<Feed> feeds = {{"c", &c}, {"x", &x}};
  std::vector<AnyValue> results;
  return session.run(feeds, {}, results, options);
}

TEST(LoadLimits, ATimeLimitEndsFolding) {
  SessionOptions options;
  options.bounded_load = false;
  options.load.time_limit_s = 0.05;
  const Status status = status_of(slow_to_fold(4000), options);
  EXPECT_EQ(status.code(), Code::kLimit);
  EXPECT_EQ(status.message(), "the time limit of 0.05 s for loading was reached");
}

TEST(LoadLimits, FoldingIsBoundedByItself) {
  auto session = load(slow_to_fold(4000), {});
  ASSERT_TRUE(session.ok());
  EXPECT_GT((*session)->graph().top().nodes.size(), 1000u);
}

TEST(LoadLimits, LoadingIsCancelledAndInterrupted) {
  SessionOptions options;
  const std::atomic<bool> cancel{true};
  options.load.cancel = &cancel;
  Status status = status_of(many_branches(10), options);
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(status.message(), "the loading was cancelled");
  options = {};
  options.bounded_load = false;
  int asked = 0;
  options.load.interrupted = [](void* count) { return ++*static_cast<int*>(count) > 2; };
  options.load.interrupted_context = &asked;
  status = status_of(slow_to_fold(4000), options);
  EXPECT_EQ(status.code(), Code::kCancelled);
  EXPECT_EQ(status.message(), "the loading was interrupted");
  EXPECT_EQ(asked, 3) << "it is told once";
}

TEST(LoadLimits, TheFlagOfOneLoadIsNotThatOfRuns) {
  SessionOptions options;
  std::atomic<bool> cancel{false};
  options.load.cancel = &cancel;
  auto session = load(many_branches(2), options);
  ASSERT_TRUE(session.ok());
  cancel = true;
  EXPECT_TRUE(run(**session).ok());
}

TEST(LoadLimits, NodesAndConstantsCountAsMemory) {
  SessionOptions options;
  options.load.memory_limit = size_t{256} << 10;
  EXPECT_THAT(status_of(many_branches(5000), options).message(), HasSubstr("the memory limit of 262144 bytes"));
  options.load.memory_limit = size_t{256} << 20;
  EXPECT_TRUE(status_of(many_branches(5000), options).ok());
}

TEST(LoadLimits, PlanningHasTheLimitsOfLoading) {
  // Each node becomes many when it is planned.
  std::string nodes;
  for (int i = 0; i < 1500; ++i) {
    nodes += fmt::format("a{}, = RNN<hidden_size = 1, activations = [\"Tanh\"]>({}, w, r) ", i,
                         i == 0 ? "x" : fmt::format("x{}", i - 1));
    nodes += fmt::format("x{} = Squeeze(a{}, one) ", i, i);  // nodes without readers are not planned
  }
  const std::string text = fmt::format(
      "{}g (float[T, 1, 1] x, float[1, 1, 1] w, float[1, 1, 1] r) => (y) <int64[1] one = {{1}}> {{ {} y = "
      "Identity(x1499) }}",
      kHeader, nodes);
  SessionOptions options;
  options.load.memory_limit = size_t{8} << 20;
  auto session = load(text, options);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  const AnyValue one = Tensor::of_float(std::vector<float>{1}).reshaped({1, 1, 1});
  const std::vector<Feed> feeds = {{"x", &one}, {"w", &one}, {"r", &one}};
  std::vector<AnyValue> results;
  EXPECT_THAT((*session)->run(feeds, {}, results).message(), HasSubstr("the memory limit of 8388608 bytes"));
  EXPECT_EQ((*session)->counters().plans, 0);
}

TEST(LoadLimits, PlanningInARunHasItsLimits) {
  auto session = load(many_branches(8000), {});
  ASSERT_TRUE(session.ok());
  RunOptions options;
  options.time_limit_s = 0.005;
  Status status = run(**session, options);
  EXPECT_EQ(status.code(), Code::kLimit);
  EXPECT_EQ(status.message(), "the time limit of 0.005 s was reached");
  const std::atomic<bool> cancel{true};
  options = {};
  options.cancel = &cancel;
  EXPECT_EQ(run(**session, options).message(), "the run was cancelled");
  EXPECT_EQ((*session)->counters().plans, 0);
  EXPECT_TRUE(run(**session).ok()) << "the session is as it was";
}

TEST(LoadLimits, OpeningAStreamIsInterrupted) {
  std::string nodes;
  for (int i = 0; i < 3000; ++i) nodes += fmt::format("a{} = Sin(a{}) ", i + 1, i);
  const std::string text = fmt::format("{}g (float[T] a0) => (y) {{ {} y = Identity(a3000) }}", kHeader, nodes);
  SessionOptions options;
  std::atomic<bool> stop{false};
  options.load.interrupted = [](void* flag) { return static_cast<std::atomic<bool>*>(flag)->load(); };
  options.load.interrupted_context = &stop;
  auto loaded = load(text, options);
  ASSERT_TRUE(loaded.ok()) << loaded.error().to_string();
  const std::shared_ptr<const Session> session = std::move(*loaded);
  StreamOptions timed;
  timed.time = {{"a0", "", 0}};
  stop = true;
  auto stream = Stream::open(session, timed);
  ASSERT_FALSE(stream.ok());
  EXPECT_THAT(stream.error().message(), HasSubstr("was interrupted"));
  stop = false;
  EXPECT_TRUE(Stream::open(session, timed).ok());
}

TEST(LoadLimits, WaitingForAPlanCanBeStopped) {
  session::PlanningLock lock;
  session::PlanningLock::Held held(lock);
  ASSERT_TRUE(held.take().ok());
  session::PlanningLock::Held again(lock);
  EXPECT_EQ(again.take().code(), Code::kRuntime) << "of the same thread: it would wait for ever";
  std::thread([&] {
    const ThreadScope scope(1, {[](const void*) { return true; }, nullptr});
    session::PlanningLock::Held wanted(lock);
    EXPECT_FALSE(wanted.take().ok());
    EXPECT_TRUE(scope.stopped());
  }).join();
}

TEST(LoadLimits, ConditionsThatDoNotChangeDoNotMultiplyALoop) {
  // Each If in the loop could be decided around it, which doubles the loop.
  std::string body, inputs;
  for (int i = 0; i < 24; ++i) {
    inputs += fmt::format("bool c{}, ", i);
    body += fmt::format(
        "v{1} = If(c{0}) <then_branch = t{0} () => (p{0}) {{ p{0} = Erf(v{0}) }}, else_branch = e{0} () => (q{0}) "
        "{{ q{0} = Sin(v{0}) }}> ",
        i, i + 1);
  }
  const std::string text = fmt::format(
      "{}g ({}int64 m, float[2] x) => (y) {{ y = Loop(m, , x) <body = b (int64 i, bool k, float[2] v0) => (l, o) {{ "
      "l = Identity(k) {} o = Identity(v24) }}> }}",
      kHeader, inputs, body);
  SessionOptions options;
  options.jit = Jit::kOff;
  auto session = load(text, options);
  ASSERT_TRUE(session.ok()) << session.error().to_string();
  auto explained = report::explain(**session);
  EXPECT_TRUE(explained.ok()) << explained.error().to_string();
}

}  // namespace
}  // namespace treadle
