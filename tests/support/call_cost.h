#pragma once
// The costs of a call besides computing: memory that it allocates and locks that it takes. Counted by functions that
// replace the allocator's and pthread_mutex_lock in this process.

#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TREADLE_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define TREADLE_SANITIZED 1
#endif
#endif

// Sanitizers replace the allocator themselves; then nothing is counted.
#if !defined(TREADLE_SANITIZED) && defined(__GLIBC__)
#define TREADLE_COUNTS_CALLS 1
#else
#define TREADLE_COUNTS_CALLS 0
#endif

namespace treadle::test {

struct CallCost {
  int64_t allocations = 0, locks = 0;
};

void begin_counting();  // on this thread
CallCost end_counting();

template <class Fn>
CallCost cost_of(Fn&& fn) {
  begin_counting();
  fn();
  return end_counting();
}

}  // namespace treadle::test
