#pragma once
// Where the elements of a packed B lie, and copying B there.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/stop.h"
#include "kernels/gemm.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template <class T>
constexpr GemmPanels panels_of(const GemmShape& shape) {
  return {kPanelWidth<T>, shape.k};
}

// Columns of all panels; the last panel is filled up.
template <class T>
constexpr int64_t padded_columns(const GemmShape& shape) {
  constexpr int64_t kWidth = kPanelWidth<T>;
  return (shape.n + kWidth - 1) / kWidth * kWidth;
}

// `columns` columns of B, from `b` on, to panels. Where rows lie in order, a few of them at a time go to all panels, so
// that they are read as they lie: pieces as wide as a panel would be one from each of many pages.
template <class T>
void pack_columns(const T* b, const GemmShape& shape, int64_t steps, int64_t columns, const GemmPanels& panels, T* to,
                  StopPoll& stop) {
  constexpr int64_t kWidth = kPanelWidth<T>, kRowsAtATime = 8, kMostSteps = 4096;
  const int64_t block = shape.b_col == 1 ? kRowsAtATime : std::clamp<int64_t>(steps, 1, kMostSteps);
  for (int64_t p = 0; p < steps; p += block) {
    const int64_t deep = std::min(block, steps - p);
    for (int64_t j = 0; j < columns; j += kWidth) {
      if (stop.after(kPackedNs * static_cast<double>(deep * kWidth))) return;
      pack_panel(b + p * shape.b_row + j * shape.b_col, shape.b_row, shape.b_col, deep, std::min(kWidth, columns - j),
                 kWidth, to + panels.place(p, j));
    }
  }
}

template <class T>
void pack_panels(const GemmPlan& plan, const void* b, void* packed, StopPoll& stop) {
  const GemmShape& s = plan.shape;
  pack_columns(static_cast<const T*>(b), s, s.k, s.n, panels_of<T>(s), static_cast<T*>(packed), stop);
}

// Panels of Half and of ScaledByte are as wide as the widest tile, so that a row times a matrix is one stream: such
// matrices come from memory. The last panel is as wide as what is left, in whole panels of float.
inline constexpr int64_t kHalfWidth = 8 * Lanes<float>::kCount;

inline int64_t half_panel_width(const GemmShape& shape, int64_t first) {
  return std::min(kHalfWidth, padded_columns<float>(shape) - first);
}

// The panels of a packed B. A B of ScaledByte has the scales of its columns in front of its panels.
template <class B>
const B* panels_in(const void* packed, const GemmShape& shape) {
  if constexpr (std::is_same_v<B, ScaledByte>) {
    return reinterpret_cast<const B*>(static_cast<const float*>(packed) + padded_columns<float>(shape));
  }
  return static_cast<const B*>(packed);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
