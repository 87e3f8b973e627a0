#pragma once
// The elements that one output position reads, in the order of the weights, as a row.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/in_pieces.h"
#include "kernels/isa/conv/axes.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// `kLanes` taps of as many channels as `count`, one behind the other: more than `taps` are copied where that stays
// inside both (what is too much is overwritten by the next channel's), since copies of a fixed size are single moves.
template <int kLanes, class T>
void copy_taps(const T* from, int64_t from_step, int64_t from_left, T* to, int64_t to_step, int64_t to_left,
               int64_t taps, int64_t count) {
  const auto channels_inside = [](int64_t left, int64_t step) {
    return left < kLanes ? 0 : (left - kLanes) / step + 1;
  };
  const int64_t wide = std::min({channels_inside(from_left, from_step), channels_inside(to_left, to_step), count});
  for (int64_t c = 0; c < wide; ++c) std::memcpy(to + c * to_step, from + c * from_step, kLanes * sizeof(T));
  for (int64_t c = wide; c < count; ++c) std::copy_n(from + c * from_step, taps, to + c * to_step);
}

// im2col_channels where there is one axis: which taps lie outside is the same for all channels.
template <class T>
void im2col_line(const ConvGeometry& g, const T* x, int64_t channels, int64_t column, T padding, T* to) {
  const Axis& w = g.width;
  const int64_t at = w.input_at(column, 0);
  const auto [begin, end] = inside(at, w.dilation, w.in, w.kernel);
  const int64_t first = at + begin * w.dilation, taps = end - begin;
  if (w.dilation == 1 && taps > 0 && taps <= 16) {
    const int64_t from_left = channels * w.in - first, to_left = channels * w.kernel - begin;
    const auto copy = taps <= 4 ? copy_taps<4, T> : taps <= 8 ? copy_taps<8, T> : copy_taps<16, T>;
    copy(x + first, w.in, from_left, to + begin, w.kernel, to_left, taps, channels);
  } else {
    for (int64_t c = 0; c < channels; ++c) {
      const T* from = x + c * w.in + first;
      for (int64_t tap = 0; tap < taps; ++tap) to[c * w.kernel + begin + tap] = from[tap * w.dilation];
    }
  }
  if (taps == w.kernel) return;
  for (int64_t c = 0; c < channels; ++c, to += w.kernel) {
    std::fill_n(to, begin, padding);
    std::fill_n(to + end, w.kernel - end, padding);
  }
}

// The part of a row that `channels` channels from `x` on make.
template <class T>
void im2col_channels(const ConvGeometry& g, const T* x, int64_t channels, int64_t position, T padding, T* to) {
  const bool one_axis = g.outer_axes == 0 && g.height.in == 1 && g.height.kernel == 1 && g.height.pad == 0;
  if (one_axis) return im2col_line(g, x, channels, position, padding, to);
  const Axis& h = g.height;
  const Axis& w = g.width;
  const int64_t outer = position / g.out_plane, row = position % g.out_plane / w.out, column = position % w.out;
  for (int64_t c = 0; c < channels; ++c) {
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

// `x` is the first channel of the group in one image, `position` counts over all output positions of a channel;
// g.k elements to `to`, `padding` where the position reaches outside. False: `stop` told it to end early.
template <class T>
bool im2col_row(const ConvGeometry& g, const T* x, int64_t position, T padding, T* to, StopPoll& stop) {
  constexpr double kTapNs = 0.5;
  const double channel_ns = kTapNs * static_cast<double>(g.taps);
  return in_pieces(g.in_per_group, channel_ns, stop, [&](int64_t begin, int64_t end) {
    im2col_channels(g, x + begin * g.in_channel(), end - begin, position, padding, to + begin * g.taps);
  });
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
