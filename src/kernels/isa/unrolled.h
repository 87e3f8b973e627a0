#pragma once
// Loops that the compiler must unroll.

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// f(0), ..., f(kCount - 1), each spelled out, so that arrays indexed by the argument become registers. A loop that is
// unrolled makes the same code as a call for each index, in a third of the compiler's time.
template <int kCount, class F>
[[gnu::always_inline]] inline void unrolled(F&& f) {
  static_assert(kCount <= 64);
#pragma GCC unroll 64
  for (int i = 0; i < kCount; ++i) f(i);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
