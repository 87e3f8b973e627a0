#pragma once
// What methods of convolving floats share besides sizes: the addend, clamps, weights as they are.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/in_pieces.h"
#include "kernels/conv.h"
#include "kernels/isa/conv/axes.h"
#include "kernels/isa/lanes.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// The addend's element for element `y` of the result.
template <class T>
const T* beside(const ConvOperands& operands, const T* y) {
  if (operands.addend == nullptr) return nullptr;
  return static_cast<const T*>(operands.addend) + (y - static_cast<const T*>(operands.y));
}

inline constexpr Clamp kNoClamp = {-__builtin_inff(), __builtin_inff()};
inline bool clamps(const Clamp& clamp) {
  return clamp.low != kNoClamp.low || clamp.high != kNoClamp.high;
}

// Methods that clamp sums in registers leave it to finish_range where something is added in between.
inline Clamp early_clamp(const ConvPlan& plan, const ConvOperands& operands) {
  return operands.addend == nullptr ? plan.clamp : kNoClamp;
}

// What is left to do with sums that are in their place, while they are in the cache: rows of `count` elements, `row`
// apart, are added to (`addend` lies like them; null: nothing) and clamped.
template <class T>
void finish_range(const Clamp& clamp, const T* addend, T* y, int64_t rows, int64_t row, int64_t count) {
  using L = Lanes<T>;
  if (addend == nullptr && !clamps(clamp)) return;
  const auto low = L::splat(static_cast<T>(clamp.low)), high = L::splat(static_cast<T>(clamp.high));
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = r * row; i < r * row + count; i += L::kCount) {
      const int64_t left = r * row + count - i;
      const auto mask = L::mask(static_cast<int>(std::min<int64_t>(left, L::kCount)));
      auto value = left >= L::kCount ? L::load(y + i) : L::load(y + i, mask);
      if (addend != nullptr) value = L::add(value, left >= L::kCount ? L::load(addend + i) : L::load(addend + i, mask));
      value = L::min(high, L::max(low, value));
      if (left >= L::kCount) {
        L::store(y + i, value);
      } else {
        L::store(y + i, mask, value);
      }
    }
  }
}

inline void copy_weights(const ConvPlan& plan, const void* weights, void* packed, StopPoll&) {
  copy_in_pieces(packed, weights, plan.packed_weight_bytes);
}

// The packing of methods that read the weights as they are given.
inline void pack_as_given(ConvPlan& plan, int64_t weights, size_t element) {
  plan.packing = "as given";
  plan.packed_weight_bytes = static_cast<size_t>(weights) * element;
  plan.pack = copy_weights;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
