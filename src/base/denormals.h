#pragma once
// Whether arithmetic of a thread keeps denormal numbers: those nearer to 0 than any normal number of their type, which
// many processors compute much slower than others. The one place that sets the processor's mode.

#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace treadle {

enum class Denormals : uint8_t {
  kKeep,   // as the calling thread's mode is: kept, unless the program has set another mode
  kFlush,  // arithmetic reads them as 0, and gives 0 in their place
};

// Whether this processor has a mode that flushes them.
#if defined(__SSE2__) || defined(__aarch64__)
inline constexpr bool kCanFlushDenormals = true;
#else
inline constexpr bool kCanFlushDenormals = false;
#endif

// While it lives, the calling thread computes as `denormals` says. Threads that help the calling thread take over its
// mode (base/thread_pool.h). Afterwards the mode is as it was before.
class DenormalScope {
 public:
  explicit DenormalScope(Denormals denormals) : flushes_(denormals == Denormals::kFlush) {
    if (!flushes_) return;
    before_ = mode();
    set_mode(before_ | kFlush);
  }
  ~DenormalScope() {
    if (flushes_) set_mode((mode() & ~kFlush) | (before_ & kFlush));  // flags of exceptions stay
  }
  DenormalScope(const DenormalScope&) = delete;
  DenormalScope& operator=(const DenormalScope&) = delete;

 private:
#if defined(__SSE2__)
  using Mode = uint32_t;
  static constexpr Mode kFlush = 0x8040;  // results and operands
  static Mode mode() { return _mm_getcsr(); }
  static void set_mode(Mode mode) { _mm_setcsr(mode); }
#elif defined(__aarch64__)
  using Mode = uint64_t;
  static constexpr Mode kFlush = uint64_t{1} << 24;  // results and operands
  static Mode mode() {
    Mode mode = 0;
    asm volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
  }
  static void set_mode(Mode mode) { asm volatile("msr fpcr, %0" : : "r"(mode)); }
#else
  using Mode = uint32_t;
  static constexpr Mode kFlush = 0;
  static Mode mode() { return 0; }
  static void set_mode(Mode) {}
#endif

  const bool flushes_;
  Mode before_ = 0;
};

}  // namespace treadle
