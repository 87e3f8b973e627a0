// To be preloaded: requests for memory by libtreadle_jit.so fail, from a given one to another.

#include <dlfcn.h>

#include <atomic>
#include <cstddef>
#include <cstring>

extern "C" {
void* __libc_malloc(size_t bytes);                      // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(size_t count, size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* old, size_t bytes);          // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(size_t alignment, size_t bytes);  // NOLINT(bugprone-reserved-identifier)
}

namespace {

std::atomic<long> requests{0}, first_to_fail{0}, last_to_fail{0};

bool is_compilers(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) && info.dli_fname && std::strstr(info.dli_fname, "libtreadle_jit");
}

bool fails(const void* caller) {
  if (first_to_fail == 0 || !is_compilers(caller)) return false;
  const long request = ++requests;
  return request >= first_to_fail && request <= last_to_fail;
}

}  // namespace

extern "C" {

// 0: none fails, and none is counted.
void treadle_fail(long first, long last) {
  requests = 0;
  last_to_fail = last;
  first_to_fail = first;
}
long treadle_requests() {
  return requests;
}

void* malloc(size_t bytes) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* old, size_t bytes) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_realloc(old, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return fails(__builtin_return_address(0)) ? nullptr : __libc_memalign(alignment, bytes);
}

}  // extern "C"
