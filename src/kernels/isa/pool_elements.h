#pragma once
// Elements of pools: NaN and the maximum.

#include <cstdint>
#include <limits>

#include "kernels/isa/vector.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template <class T>
constexpr T lowest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
}

template <class T>
T take_max(T best, T x) {
  return x > best || x != x ? x : best;
}

// Whether an element is NaN.
template <class T>
bool any_nan(const T* x, int64_t count) {
  using V = Vec<T, kFullLanes<T>>;
  int64_t i = 0;
  auto found = V(T(0)) != V(T(0));
  for (; i + 2 * V::kLanes <= count; i += 2 * V::kLanes) {
    const V a = V::load(x + i), b = V::load(x + i + V::kLanes);
    found = found | (a != a) | (b != b);
  }
  bool rest = false;
  for (; i < count; ++i) rest |= x[i] != x[i];
  return rest || any(found);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
