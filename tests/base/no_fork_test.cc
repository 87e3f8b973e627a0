#include "base/no_fork.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace treadle {
namespace {

// The exit status of a child that runs `fn`.
template <class Fn>
int in_child(Fn&& fn) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);  // ends a child that hangs
    _exit(fn());
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(NoFork, AForkWaitsForWorkInAnotherThread) {
  static std::atomic<bool> begun{false}, done{false};
  // Detached: the child has no such thread, and cannot join it.
  std::thread([] {
    const NoFork whole;
    const NoFork nested;
    begun = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    done = true;
  }).detach();
  while (!begun) std::this_thread::yield();
  EXPECT_EQ(in_child([] { return done ? 0 : 1; }), 0);
}

TEST(NoFork, ParentAndChildGoOnAfterAFork) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(in_child([] {
                const NoFork whole;
                return 0;
              }),
              0);
    const NoFork whole;
  }
}

TEST(NoFork, AThreadThatHoldsItMayFork) {
  const NoFork whole;
  EXPECT_EQ(in_child([] {
              {
                const NoFork nested;
              }
              return in_child([] { return 0; });
            }),
            0);
}

}  // namespace
}  // namespace treadle
