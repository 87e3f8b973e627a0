#pragma once
// A convolution's sizes as the kernels see them: two inner axes (height 1 where there is but one axis), all others
// folded into "outer" positions, which only ever select an input plane.

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/conv.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// One inner axis.
struct Axis {
  int64_t in = 1, out = 1, kernel = 1, stride = 1, dilation = 1, pad = 0;

  // Taps whose distance is no multiple of the stride read different residues of the input ("phases"); tap t reads phase
  // t % phases(), shifted by shift(t).
  int64_t phases() const { return std::min(kernel, stride / std::gcd(stride, dilation)); }
  int64_t phase_of(int64_t tap) const { return tap % (stride / std::gcd(stride, dilation)); }
  int64_t residue(int64_t phase) const { return phase * dilation % stride; }
  int64_t shift(int64_t tap) const { return tap * dilation / stride; }
  int64_t largest_shift() const { return shift(kernel - 1); }
  int64_t input_at(int64_t position, int64_t tap) const { return position * stride + tap * dilation - pad; }
};

struct Interval {
  int64_t begin, end;
};
// The i in [0, count) for which first + i * stride lies in [0, size).
inline Interval inside(int64_t first, int64_t stride, int64_t size, int64_t count) {
  if (stride == 1) {  // divisions take long
    const int64_t begin = std::clamp<int64_t>(-first, 0, count);
    return {begin, std::clamp(size - first, begin, count)};
  }
  const int64_t begin = first >= 0 ? 0 : std::min(count, (-first + stride - 1) / stride);
  const int64_t end = first >= size ? begin : std::clamp((size - 1 - first) / stride + 1, begin, count);
  return {begin, end};
}

struct ConvGeometry {
  explicit ConvGeometry(const ConvShape& s) : shape(s), outer_axes(std::max(s.axes - 2, 0)) {
    if (s.axes >= 2) height = axis(s.axes - 2);
    if (s.axes >= 1) width = axis(s.axes - 1);
    for (int i = 0; i < outer_axes; ++i) {
      outer_taps *= s.kernel[i];
      outer_out *= s.output[i];
      outer_in *= s.input[i];
    }
    in_per_group = s.in_channels / s.groups;
    out_per_group = s.out_channels / s.groups;
    in_plane = height.in * width.in;
    out_plane = height.out * width.out;
    taps = outer_taps * height.kernel * width.kernel;
    k = in_per_group * taps;
  }

  // The plane of a channel that outer tap `tap` reads for outer output position `position`; -1: padding.
  int64_t outer_plane(int64_t position, int64_t tap) const {
    int64_t plane = 0, scale = 1;
    for (int i = outer_axes - 1; i >= 0; --i) {
      const int64_t at =
          position % shape.output[i] * shape.stride[i] + tap % shape.kernel[i] * shape.dilation[i] - shape.pad_begin[i];
      if (at < 0 || at >= shape.input[i]) return -1;
      plane += at * scale;
      scale *= shape.input[i];
      position /= shape.output[i];
      tap /= shape.kernel[i];
    }
    return plane;
  }

  bool is_depthwise() const { return in_per_group == 1 && out_per_group == 1 && outer_axes == 0 && !shape.transposed; }
  int64_t in_channel() const { return outer_in * in_plane; }     // elements of one input channel
  int64_t out_channel() const { return outer_out * out_plane; }  // elements of one output channel

  const ConvShape& shape;
  int outer_axes;
  Axis height, width;
  int64_t outer_taps = 1, outer_out = 1, outer_in = 1;
  int64_t in_per_group, out_per_group;
  int64_t in_plane, out_plane;  // of the inner axes
  int64_t taps, k;

 private:
  Axis axis(int i) const {
    return {shape.input[i], shape.output[i], shape.kernel[i], shape.stride[i], shape.dilation[i], shape.pad_begin[i]};
  }
};

// Whether tiles of some output rows serve the kernel: 3, 5 or 7 rows, strides 1 and 2.
inline bool is_depthwise_by_rows(const ConvGeometry& g) {
  const Axis& h = g.height;
  const bool rows = (h.kernel == 3 || h.kernel == 5 || h.kernel == 7) && h.dilation == 1 && h.stride <= 2;
  return rows && g.width.stride <= 2 && g.is_depthwise() && g.out_plane > 0 && g.in_plane > 0;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
