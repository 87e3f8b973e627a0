#pragma once
// The elements that one output position reads, in the order of the weights, as a row.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv_geometry.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// `x` is the first channel of the group in one image, `position` counts over all output positions of a channel;
// g.k elements to `to`, `padding` where the position reaches outside.
template <class T>
void im2col_row(const ConvGeometry& g, const T* x, int64_t position, T padding, T* to) {
  const Axis& h = g.height;
  const Axis& w = g.width;
  const int64_t outer = position / g.out_plane, row = position % g.out_plane / w.out, column = position % w.out;
  for (int64_t c = 0; c < g.in_per_group; ++c) {
    for (int64_t tap = 0; tap < g.outer_taps; ++tap) {
      const int64_t index = g.outer_plane(outer, tap);
      const T* plane = x + c * g.in_channel() + std::max<int64_t>(index, 0) * g.in_plane;
      for (int64_t ky = 0; ky < h.kernel; ++ky, to += w.kernel) {
        const int64_t at_y = h.input_at(row, ky), at_x = w.input_at(column, 0);
        if (index < 0 || at_y < 0 || at_y >= h.in) {
          std::fill_n(to, w.kernel, padding);
        } else if (w.dilation == 1 && at_x >= 0 && at_x + w.kernel <= w.in) {
          std::copy_n(plane + at_y * w.in + at_x, w.kernel, to);
        } else {
          for (int64_t kx = 0; kx < w.kernel; ++kx) {
            const int64_t at = at_x + kx * w.dilation;
            to[kx] = at >= 0 && at < w.in ? plane[at_y * w.in + at] : padding;
          }
        }
      }
    }
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
