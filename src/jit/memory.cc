#include "jit/memory.h"

#include <dlfcn.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstring>

// These replace the C library's functions within this shared object only.
// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the names are the C library's
extern "C" {
[[gnu::visibility("hidden")]] void* malloc(size_t bytes) noexcept;
[[gnu::visibility("hidden")]] void* calloc(size_t count, size_t bytes) noexcept;
[[gnu::visibility("hidden")]] void* realloc(void* old, size_t bytes) noexcept;
[[gnu::visibility("hidden")]] void* aligned_alloc(size_t alignment, size_t bytes) noexcept;
[[gnu::visibility("hidden")]] void free(void* memory) noexcept;
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace treadle::jit {

namespace {

// The point to which this thread's run_guarded() returns.
thread_local std::jmp_buf* way_out = nullptr;

constinit std::atomic<bool> is_broken_off = false;
char reason[256] = {};

// A constructor that runs while the object is loaded cannot report a lack of memory, so constructors get memory from
// this pool. They need less than half of it. It is never freed.
constinit bool is_loaded = false;
alignas(std::max_align_t) constinit std::byte pool[size_t{1} << 20] = {};
constinit size_t pool_used = 0;
constexpr size_t kHead = sizeof(std::max_align_t);  // in front of each piece, for its size

bool is_in_pool(const void* memory) {
  return reinterpret_cast<uintptr_t>(memory) - reinterpret_cast<uintptr_t>(pool) < sizeof pool;
}

size_t size_in_pool(const void* memory) {
  size_t bytes = 0;
  std::memcpy(&bytes, static_cast<const std::byte*>(memory) - kHead, sizeof bytes);
  return bytes;
}

void* take_from_pool(size_t bytes, size_t alignment) {
  const size_t left = sizeof pool - pool_used;
  if (alignment > kHead || bytes > left || left - bytes < 2 * kHead) return nullptr;
  std::memcpy(pool + pool_used, &bytes, sizeof bytes);
  void* taken = pool + pool_used + kHead;
  pool_used += kHead + (bytes + kHead - 1) / kHead * kHead;
  return taken;
}

// The result if there is no memory.
void* instead(size_t bytes, size_t alignment = 1) {
  if (!is_loaded) return take_from_pool(bytes, alignment);
  if (way_out) break_off("there is no memory to compile it");
  return nullptr;
}

// The process-wide function of this name.
template <class Function>
Function* everybodys(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_DEFAULT, name));
}

}  // namespace

bool run_guarded(void (*work)(void*), void* data) {
  std::jmp_buf here;
  way_out = &here;
  // NOLINTNEXTLINE(cert-err52-cpp): the skipped objects must not be destroyed
  const bool done = setjmp(here) == 0;
  if (done) work(data);
  way_out = nullptr;
  return done;
}

void break_off(const char* why) {
  if (!is_broken_off.exchange(true)) std::strncpy(reason, why, sizeof reason - 1);
  std::longjmp(*way_out, 1);  // NOLINT(cert-err52-cpp): likewise
}

const char* broken_off_for() {
  return is_broken_off ? reason : nullptr;
}

void use_thread_locals() {
  *static_cast<std::jmp_buf* volatile*>(&way_out) = nullptr;
}

void loaded() {
  is_loaded = true;
}

}  // namespace treadle::jit

using treadle::jit::everybodys;
using treadle::jit::instead;
using treadle::jit::is_in_pool;
using treadle::jit::size_in_pool;

extern "C" {

void* malloc(size_t bytes) noexcept {
  static auto* const theirs = everybodys<void*(size_t)>("malloc");
  void* memory = theirs(bytes);
  return memory ? memory : instead(bytes);
}

void* calloc(size_t count, size_t bytes) noexcept {
  static auto* const theirs = everybodys<void*(size_t, size_t)>("calloc");
  void* memory = theirs(count, bytes);
  size_t all = 0;
  if (memory || __builtin_mul_overflow(count, bytes, &all)) return memory;
  return instead(all);  // the pool is zero and used only once
}

void* realloc(void* old, size_t bytes) noexcept {
  static auto* const theirs = everybodys<void*(void*, size_t)>("realloc");
  const bool pooled = is_in_pool(old);
  void* memory = pooled ? nullptr : theirs(old, bytes);
  if (memory || (bytes == 0 && !pooled)) return memory;
  memory = malloc(bytes);
  if (memory && old) std::memcpy(memory, old, std::min(bytes, pooled ? size_in_pool(old) : malloc_usable_size(old)));
  if (memory) free(old);
  return memory;
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  static auto* const theirs = everybodys<void*(size_t, size_t)>("aligned_alloc");
  void* memory = theirs(alignment, bytes);
  return memory ? memory : instead(bytes, alignment);
}

void free(void* memory) noexcept {
  static auto* const theirs = everybodys<void(void*)>("free");
  if (!is_in_pool(memory)) theirs(memory);
}

}  // extern "C"
