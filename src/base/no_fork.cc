#include "base/no_fork.h"

#include <pthread.h>

#include <cstddef>
#include <new>
#include <shared_mutex>

namespace treadle {

namespace {

// Shared by those who want no fork, exclusive around a fork. Placed by hand: made anew in the child, where unlocking it
// would not do, since its holders have other thread numbers there or do not exist.
alignas(std::shared_mutex) std::byte gate_memory[sizeof(std::shared_mutex)];

// How many NoFork this thread holds. A thread that forks while it holds one waits for nobody.
thread_local int held = 0;

std::shared_mutex& existing_gate() {
  return *std::launder(reinterpret_cast<std::shared_mutex*>(gate_memory));
}

void before_fork() {
  if (held == 0) existing_gate().lock();
}

void after_fork_in_parent() {
  if (held == 0) existing_gate().unlock();
}

void after_fork_in_child() {
  auto* gate = new (gate_memory) std::shared_mutex;
  if (held > 0) gate->lock_shared();
}

std::shared_mutex& gate() {
  static std::shared_mutex* const made = [] {
    auto* gate = new (gate_memory) std::shared_mutex;
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    return gate;
  }();
  return *made;
}

}  // namespace

NoFork::NoFork() {
  if (held++ == 0) gate().lock_shared();
}

NoFork::~NoFork() {
  if (--held == 0) gate().unlock_shared();
}

}  // namespace treadle
