#pragma once
// A fork copies the calling thread alone. Data that another thread was changing would stay half changed in the child,
// and the lock around it would never be released.

namespace treadle {

// While it lives, fork() in another thread waits. Hold it around work under a lock that a child may need, and take the
// lock after it. May be nested.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

}  // namespace treadle
