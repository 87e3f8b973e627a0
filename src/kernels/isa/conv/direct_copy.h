#pragma once
// The copy of the input that tiles with channels in the lanes read: [row][column][channel], with what lies outside the
// input around it.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/direct_sums.h"
#include "kernels/isa/gemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

// to[j * to_row + i] = from[i * from_row + j] for i < rows, j < columns, at most as many as lanes.
inline void transpose_tile(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                           int64_t to_row) {
  using L = Lanes<float>;
  if (rows == L::kCount && columns == L::kCount) return transpose_square(from, from_row, to, to_row);
  alignas(kVectorBytes) float square[L::kCount * L::kCount], transposed[L::kCount * L::kCount];
  const auto mask = L::mask(static_cast<int>(columns));
  for (int64_t i = 0; i < rows; ++i) L::store(square + i * L::kCount, L::load(from + i * from_row, mask));
  for (int64_t i = rows; i < L::kCount; ++i) L::store(square + i * L::kCount, L::zero());
  transpose_square(square, L::kCount, transposed, L::kCount);
  for (int64_t j = 0; j < columns; ++j, to += to_row) {
    const auto row = L::load(transposed + j * L::kCount);
    if (rows == L::kCount) {
      L::store(to, row);
    } else {
      store_first(to, static_cast<int>(rows), row);
    }
  }
}

// to[j * to_row + i] = from[i * from_row + j]: `columns` neighbours of `rows` planes. Plane by plane, since planes that
// lie a power of two apart share few lines of the caches.
inline void transpose_planes(const float* from, int64_t from_row, int64_t rows, int64_t columns, float* to,
                             int64_t to_row) {
  constexpr int64_t kLanes = Lanes<float>::kCount;
  const int64_t width = std::min(kLanes, columns), height = std::min(kLanes, rows);
  // Whole squares may overlap, which is less work than parts of some.
  for (int64_t i = 0; i < rows; i += kLanes) {
    const int64_t top = std::min(i, rows - height);
    for (int64_t j = 0; j < columns; j += kLanes) {
      const int64_t first = std::min(j, columns - width);
      transpose_tile(from + top * from_row + first, from_row, height, width, to + first * to_row + top, to_row);
    }
  }
}

// The input that a unit's positions read, [row][column][channel]; `copy` writes a piece of a row of it, `pad` what lies
// outside.
template <class Element, class Copy, class Pad>
void copy_band(const DirectLayout& layout, const ChannelUnit& unit, Element* to, Copy&& copy, Pad&& pad) {
  const ChannelAxis &h = layout.height, &w = layout.width;
  const int64_t first = unit.column * w.step + w.begin, width = w.extent(unit.columns);
  const int64_t top = unit.row * h.step + h.begin, height = h.extent(unit.rows);
  const auto [begin, end] = inside(first, 1, w.in, width);
  const auto [row_begin, row_end] = inside(top, 1, h.in, height);
  pad(to, row_begin * layout.pitch);
  if (first == 0 && width == w.in && width == layout.pitch) {
    copy((top + row_begin) * w.in, (row_end - row_begin) * width, to + row_begin * layout.pitch * layout.stride);
  } else {
    for (int64_t r = row_begin; r < row_end; ++r) {
      Element* row = to + r * layout.pitch * layout.stride;
      pad(row, begin);
      if (end > begin) copy((top + r) * w.in + first + begin, end - begin, row + begin * layout.stride);
      pad(row + end * layout.stride, layout.pitch - end);
    }
  }
  pad(to + row_end * layout.pitch * layout.stride, (height - row_end) * layout.pitch);
}

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
