#pragma once
// Loops that the compiler must unroll.

#include <type_traits>
#include <utility>

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// f(0), ..., f(kCount - 1) with constant arguments, so that arrays indexed by them become registers.
template <int kCount, class F>
[[gnu::always_inline]] inline void unrolled(F&& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, i>()), ...);
  }(std::make_integer_sequence<int, kCount>());
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
