#pragma once
// A fork copies the calling thread alone: what another thread was changing just then stays half done in the child, and
// the lock around it is held for ever.

namespace treadle {

// For its lifetime, fork() in another thread waits. To be held around work under a lock that a child may need as well;
// such a lock is taken after this. May be nested.
class NoFork {
 public:
  NoFork();
  ~NoFork();
  NoFork(const NoFork&) = delete;
  NoFork& operator=(const NoFork&) = delete;
};

}  // namespace treadle
