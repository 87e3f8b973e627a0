#include "support/call_cost.h"

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>

namespace treadle::test {

// Only the thread that counts is counted.
static thread_local bool counting = false;
static std::atomic<int64_t> allocations{0}, locks{0};

// Sanitizers replace the allocator themselves.
[[maybe_unused]] static void count_allocation() {
  if (counting) allocations.fetch_add(1, std::memory_order_relaxed);
}

void begin_counting() {
  allocations = locks = 0;
  counting = true;
}

CallCost end_counting() {
  counting = false;
  return {allocations.load(), locks.load()};
}

}  // namespace treadle::test

#if TREADLE_COUNTS_CALLS

using treadle::test::count_allocation;
using treadle::test::counting;
using treadle::test::locks;

// The C++ library uses these too: its operator new allocates through them.
#pragma GCC visibility push(default)
extern "C" {

void* __libc_malloc(size_t bytes);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, size_t bytes);       // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT(bugprone-reserved-identifier)

// operator new comes through here as well.
void* malloc(size_t bytes) {
  count_allocation();
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  count_allocation();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  count_allocation();
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  count_allocation();
  return __libc_memalign(alignment, bytes);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static const auto real = reinterpret_cast<int (*)(pthread_mutex_t*)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  if (counting) locks.fetch_add(1, std::memory_order_relaxed);
  return real(mutex);
}

}  // extern "C"
#pragma GCC visibility pop

#endif
