#include "allocation/faults.h"

#include <execinfo.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <utility>

// The linker turns calls of the engine into calls of __wrap_...; __real_... is the function that it would have called.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* memory, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void** memory, size_t alignment, size_t bytes);
void __real_free(void* memory);
char* __real_realpath(const char* path, char* resolved);
void* __real_mmap(void* where, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void* memory, size_t bytes);
void* __real_mremap(void* memory, size_t bytes, size_t wanted, int flags);
int __real_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* context);
}
// NOLINTEND(bugprone-reserved-identifier)

namespace treadle::faults {

namespace {

constexpr int kFrames = 24;
using Stack = std::array<void*, kFrames>;

enum class Mode : uint8_t { kOff, kArmed, kListing };

std::atomic<Mode> mode{Mode::kOff};
Point chosen;
std::atomic<int64_t> requests{0}, refused{0};
Stack refused_at{};
thread_local bool is_caller = false;
thread_local bool is_inside = false;  // memory of the bookkeeping itself is not counted
thread_local uintptr_t stack_begin = 0;
std::vector<Place> listed;
std::atomic_flag listing = ATOMIC_FLAG_INIT;

class Spinning {
 public:
  explicit Spinning(std::atomic_flag& flag) : flag_(flag) {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  ~Spinning() { flag_.clear(std::memory_order_release); }
  Spinning(const Spinning&) = delete;
  Spinning& operator=(const Spinning&) = delete;

 private:
  std::atomic_flag& flag_;
};

// --- live pieces: a hash table of addresses, in memory of its own

struct Piece {
  const void* memory = nullptr;
  int64_t age = 0;
};
constexpr size_t kPieces = size_t{1} << 20;
std::array<Piece, kPieces> pieces;
std::array<Stack, kPieces>* stacks = nullptr;  // parallel to the pieces
std::atomic_flag pieces_lock = ATOMIC_FLAG_INIT;
std::atomic<int64_t> living{0}, born{0};

size_t home_of(const void* memory) {
  return (reinterpret_cast<uintptr_t>(memory) >> 4) * 0x9E3779B97F4A7C15u >> 44;
}

void take_stack(Stack& stack) {
  stack = {};
  const bool outer = std::exchange(is_inside, true);
  backtrace(stack.data(), kFrames);
  is_inside = outer;
}

void add_piece(const void* memory) {
  if (!memory || is_inside) return;
  const int64_t age = born.fetch_add(1, std::memory_order_relaxed) + 1;
  if (living.fetch_add(1, std::memory_order_relaxed) > static_cast<int64_t>(kPieces / 2)) {
    std::fputs("too many pieces of memory to keep count of\n", stderr);
    std::abort();
  }
  Stack stack;
  if (stacks) take_stack(stack);
  const Spinning lock(pieces_lock);
  size_t at = home_of(memory);
  while (pieces[at].memory) at = (at + 1) % kPieces;
  pieces[at] = {memory, age};
  if (stacks) (*stacks)[at] = stack;
}

void remove_piece(const void* memory) {
  if (!memory) return;
  const Spinning lock(pieces_lock);
  size_t at = home_of(memory);
  while (pieces[at].memory && pieces[at].memory != memory) at = (at + 1) % kPieces;
  if (!pieces[at].memory) return;  // not allocated here
  living.fetch_sub(1, std::memory_order_relaxed);
  // Entries behind it move up as far as they may.
  for (size_t next = (at + 1) % kPieces; pieces[next].memory; next = (next + 1) % kPieces) {
    const size_t away = (next - home_of(pieces[next].memory)) % kPieces, gap = (next - at) % kPieces;
    if (away < gap) continue;
    pieces[at] = pieces[next];
    if (stacks) (*stacks)[at] = (*stacks)[next];
    at = next;
  }
  pieces[at] = {};
}

void print(const Stack& stack) {
  int count = 0;
  while (count < kFrames && stack[static_cast<size_t>(count)]) ++count;
  backtrace_symbols_fd(stack.data(), count, STDERR_FILENO);
}

// --- which requests are refused

[[gnu::noinline]] bool is_refused(const void* caller) {
  const Mode now = mode.load(std::memory_order_acquire);
  if (now == Mode::kOff || is_inside || is_caller != (chosen.whose == Whose::kCaller)) return false;
  const int64_t n = requests.fetch_add(1, std::memory_order_relaxed) + 1;
  if (now == Mode::kListing) {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    if (stack_begin == 0) stack_begin = here;
    const Place place = (reinterpret_cast<uintptr_t>(caller) ^ (stack_begin - here) << 40) * 0x9E3779B97F4A7C15u;
    const Spinning lock(listing);
    const bool outer = std::exchange(is_inside, true);
    listed.push_back(place);
    is_inside = outer;
    return false;
  }
  if (chosen.how == How::kOne ? n != chosen.nth : n < chosen.nth || chosen.nth == 0) return false;
  if (refused.fetch_add(1, std::memory_order_relaxed) == 0) take_stack(refused_at);
  return true;
}

void begin(const Point& point, Mode next) {
  chosen = point;
  requests = refused = 0;
  is_caller = true;
  stack_begin = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  mode.store(next, std::memory_order_release);
}

void* counted(void* memory) {
  add_piece(memory);
  return memory;
}

void* get(size_t bytes, size_t alignment, const void* caller) {
  if (is_refused(caller)) return nullptr;
  if (bytes == 0) bytes = 1;
  if (alignment <= alignof(std::max_align_t)) return counted(__real_malloc(bytes));
  return counted(__real_aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment));
}

void* get_or_throw(size_t bytes, size_t alignment, const void* caller) {
  if (void* memory = get(bytes, alignment, caller)) return memory;
  throw std::bad_alloc();
}

void give_back(void* memory) {
  remove_piece(memory);
  __real_free(memory);
}

}  // namespace

void arm(const Point& point) {
  begin(point, Mode::kArmed);
}

int64_t disarm() {
  mode.store(Mode::kOff, std::memory_order_release);
  is_caller = false;
  return refused.load();
}

void begin_listing(Whose whose) {
  listed.clear();
  begin({whose, How::kOne, 0}, Mode::kListing);
}

std::vector<Place> end_listing() {
  disarm();
  const Spinning lock(listing);
  return std::exchange(listed, {});
}

int64_t live() {
  return living.load();
}

int64_t age() {
  return born.load();
}

void keep_stacks() {
  const size_t bytes = sizeof *stacks;
  void* memory =
      __real_mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) stacks = static_cast<std::array<Stack, kPieces>*>(memory);
}

void print_living_since(int64_t since) {
  for (size_t i = 0; stacks && i < kPieces; ++i) {
    if (!pieces[i].memory || pieces[i].age <= since) continue;
    std::fprintf(stderr, "--- %p is still there, asked for at:\n", pieces[i].memory);
    print((*stacks)[i]);
  }
}

void print_refused() {
  print(refused_at);
}

void print_here() {
  Stack stack;
  take_stack(stack);
  print(stack);
}

}  // namespace treadle::faults

// The C++ library uses these too: its strings and lists allocate memory through them.
#pragma GCC visibility push(default)

using treadle::faults::get;
using treadle::faults::get_or_throw;
using treadle::faults::give_back;

#define TREADLE_CALLER __builtin_return_address(0)
constexpr size_t kUsual = alignof(std::max_align_t);

// NOLINTBEGIN(misc-definitions-in-headers,readability-inconsistent-declaration-parameter-name)
void* operator new(size_t bytes) {
  return get_or_throw(bytes, kUsual, TREADLE_CALLER);
}
void* operator new[](size_t bytes) {
  return get_or_throw(bytes, kUsual, TREADLE_CALLER);
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return get(bytes, kUsual, TREADLE_CALLER);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  return get(bytes, kUsual, TREADLE_CALLER);
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  return get_or_throw(bytes, static_cast<size_t>(alignment), TREADLE_CALLER);
}
void* operator new[](size_t bytes, std::align_val_t alignment) {
  return get_or_throw(bytes, static_cast<size_t>(alignment), TREADLE_CALLER);
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return get(bytes, static_cast<size_t>(alignment), TREADLE_CALLER);
}
void* operator new[](size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return get(bytes, static_cast<size_t>(alignment), TREADLE_CALLER);
}
void operator delete(void* memory) noexcept {
  give_back(memory);
}
void operator delete[](void* memory) noexcept {
  give_back(memory);
}
void operator delete(void* memory, size_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  give_back(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
  give_back(memory);
}
// NOLINTEND(misc-definitions-in-headers,readability-inconsistent-declaration-parameter-name)

#pragma GCC visibility pop

// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" {

void* __wrap_malloc(size_t bytes) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) {
    errno = ENOMEM;
    return nullptr;
  }
  return treadle::faults::counted(__real_malloc(bytes));
}
void* __wrap_calloc(size_t count, size_t bytes) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) {
    errno = ENOMEM;
    return nullptr;
  }
  return treadle::faults::counted(__real_calloc(count, bytes));
}
void* __wrap_realloc(void* memory, size_t bytes) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) {
    errno = ENOMEM;
    return nullptr;
  }
  treadle::faults::remove_piece(memory);
  return treadle::faults::counted(__real_realloc(memory, bytes));
}
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) {
    errno = ENOMEM;
    return nullptr;
  }
  return treadle::faults::counted(__real_aligned_alloc(alignment, bytes));
}
int __wrap_posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) return ENOMEM;
  const int failed = __real_posix_memalign(memory, alignment, bytes);
  if (failed == 0) treadle::faults::add_piece(*memory);
  return failed;
}
void __wrap_free(void* memory) {
  give_back(memory);
}
char* __wrap_realpath(const char* path, char* resolved) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) {
    errno = ENOMEM;
    return nullptr;
  }
  return __real_realpath(path, resolved);
}
void* __wrap_mmap(void* where, size_t bytes, int protection, int flags, int file, off_t offset) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* memory = __real_mmap(where, bytes, protection, flags, file, offset);
  if (memory != MAP_FAILED) treadle::faults::add_piece(memory);
  return memory;
}
int __wrap_munmap(void* memory, size_t bytes) {
  treadle::faults::remove_piece(memory);
  return __real_munmap(memory, bytes);
}
void* __wrap_mremap(void* memory, size_t bytes, size_t wanted, int flags) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  void* moved = __real_mremap(memory, bytes, wanted, flags);
  if (moved == MAP_FAILED) return moved;
  treadle::faults::remove_piece(memory);
  treadle::faults::add_piece(moved);
  return moved;
}
int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* context) {
  if (treadle::faults::is_refused(TREADLE_CALLER)) return EAGAIN;
  return __real_pthread_create(thread, attributes, run, context);
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier)
