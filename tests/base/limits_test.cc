#include "base/limits.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "base/thread_pool.h"

namespace treadle {
namespace {

TEST(Limits, NameTheLimitThatWasReached) {
  Limits limits;
  WorkLimits none;
  limits.begin(none, "run");
  EXPECT_TRUE(limits.check().ok());
  EXPECT_EQ(limits.stop_check().should_stop, nullptr) << "nothing to ask";

  std::atomic<bool> cancel{false};
  WorkLimits cancelled;
  cancelled.cancel = &cancel;
  limits.begin(cancelled, "loading");
  EXPECT_TRUE(limits.check().ok());
  cancel = true;
  EXPECT_EQ(limits.check().message(), "the loading was cancelled");

  WorkLimits timed;
  timed.time_limit_s = 1e-9;
  limits.begin(timed, "run");
  std::this_thread::sleep_for(std::chrono::microseconds(10));
  const Status reached = limits.check();
  EXPECT_EQ(reached.code(), Code::kLimit);
  EXPECT_EQ(reached.message(), "the time limit of 1e-09 s was reached");

  timed.time_limit_s = 1e300;  // more than a clock can represent
  limits.begin(timed, "run");
  EXPECT_TRUE(limits.check().ok());
}

// Asks only on the thread that began, and remembers the answer, since a signal comes once.
TEST(Limits, AskForInterruptsOnTheThreadThatWorks) {
  struct Asked {
    std::thread::id owner = std::this_thread::get_id();
    int times = 0, elsewhere = 0;
  } asked;
  WorkLimits interrupted;
  interrupted.interrupted_context = &asked;
  interrupted.interrupted = [](void* context) {
    auto& a = *static_cast<Asked*>(context);
    if (std::this_thread::get_id() != a.owner) ++a.elsewhere;
    return ++a.times == 1;
  };
  Limits limits;
  limits.begin(interrupted, "run");
  const ThreadScope scope(3, limits.stop_check());
  std::atomic<int64_t> done{0};
  parallel_for(100'000, 1e6, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end && !stop_requested(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    done += end - begin;
  });
  EXPECT_TRUE(scope.stopped());
  EXPECT_EQ(asked.elsewhere, 0);
  EXPECT_EQ(limits.check().message(), "the run was interrupted");
  EXPECT_EQ(asked.times, 1);
  EXPECT_LT(done, 100'000);
}

TEST(StopPoll, AsksOncePerSomeMilliseconds) {
  int asked = 0;
  const StopCheck check{[](const void* count) { return ++*static_cast<int*>(const_cast<void*>(count)) == 3; }, &asked};
  const ThreadScope scope(1, check);
  StopPoll stop;
  double counted = 0;
  for (const double ns = kStopCheckNs / 100; !stop.after(ns);) counted += ns;
  EXPECT_EQ(asked, 3);
  // Two short pieces and one of the longest length: the loop takes no time at all.
  EXPECT_NEAR(counted, kShortNs + 2.0 / 16 * kStopCheckNs, 0.03 * kStopCheckNs);
  EXPECT_TRUE(scope.stopped());
}

TEST(ThreadScope, InsideOfAnotherStopsWithIt) {
  const StopCheck check{[](const void*) { return true; }, nullptr};
  EXPECT_FALSE(stop_requested());
  const ThreadScope outer(1, check);
  EXPECT_TRUE(stop_requested());
  {
    const ThreadScope inner(2);
    EXPECT_TRUE(stop_requested());
  }
  EXPECT_TRUE(stop_requested());
}

}  // namespace
}  // namespace treadle
