#include "base/no_fork.h"

#include <pthread.h>

#include <atomic>

namespace treadle {

namespace {

constexpr int kForking = -1;

// How many threads forbid a fork, or kForking. It is a plain number, not a lock: a lock would hold thread numbers,
// which mean nothing in the child.
constinit std::atomic<int> threads{0};

// How many NoFork objects this thread holds. A thread that forks while it holds one does not wait.
thread_local int held = 0;

void before_fork() {
  if (held > 0) return;
  for (int none = 0; !threads.compare_exchange_weak(none, kForking, std::memory_order_acquire); none = 0) {
    if (none != 0) threads.wait(none, std::memory_order_relaxed);
  }
}

void after_fork(int count) {
  threads.store(count, std::memory_order_release);
  threads.notify_all();
}

void after_fork_in_parent() {
  if (held == 0) after_fork(0);
}

void after_fork_in_child() {
  after_fork(held > 0 ? 1 : 0);  // the child has only the calling thread
}

}  // namespace

NoFork::NoFork() {
  [[maybe_unused]] static const int registered = pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  if (held++ > 0) return;
  int count = threads.load(std::memory_order_relaxed);
  for (;;) {
    if (count == kForking) {
      threads.wait(count, std::memory_order_relaxed);
      count = threads.load(std::memory_order_relaxed);
    } else if (threads.compare_exchange_weak(count, count + 1, std::memory_order_acquire)) {
      return;
    }
  }
}

NoFork::~NoFork() {
  if (--held > 0) return;
  threads.fetch_sub(1, std::memory_order_release);
  threads.notify_all();
}

}  // namespace treadle
