#pragma once
// Loops that the compiler must unroll.

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Calls f(0), ..., f(kCount - 1). The calls are unrolled, so arrays indexed by the argument become registers. The code
// is the same as with a call written for each index, and takes a third of the compiler's time.
template <int kCount, class F>
[[gnu::always_inline]] inline void unrolled(F&& f) {
  static_assert(kCount <= 64);
#pragma GCC unroll 64
  for (int i = 0; i < kCount; ++i) f(i);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
