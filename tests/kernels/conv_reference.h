#pragma once
// The definition of a convolution: a plain loop over its products.

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/conv.h"

namespace treadle::kernels {

inline int64_t product(const Spatial& sizes, int axes) {
  int64_t p = 1;
  for (int i = 0; i < axes; ++i) p *= sizes[static_cast<size_t>(i)];
  return p;
}

inline int64_t channel_size(const ConvShape& s) {
  return product(s.input, s.axes);
}
inline int64_t weight_size(const ConvShape& s) {
  return s.in_channels * s.out_channels / s.groups * product(s.kernel, s.axes);
}

// The definition, one multiplication at a time. For every (output position, tap): the input position, or false.
template <class F>
void for_each_product(const ConvShape& s, F&& f) {
  const int64_t windows = s.transposed ? product(s.input, s.axes) : product(s.output, s.axes);
  const Spatial& of_window = s.transposed ? s.input : s.output;
  const Spatial& of_target = s.transposed ? s.output : s.input;
  for (int64_t window = 0; window < windows; ++window) {
    for (int64_t tap = 0; tap < product(s.kernel, s.axes); ++tap) {
      int64_t target = 0, scale = 1, w = window, t = tap;
      bool inside = true;
      for (int i = s.axes - 1; i >= 0; --i) {
        const auto d = static_cast<size_t>(i);
        const int64_t at = w % of_window[d] * s.stride[d] + t % s.kernel[d] * s.dilation[d] - s.pad_begin[d];
        inside = inside && at >= 0 && at < of_target[d];
        target += at * scale;
        scale *= of_target[d];
        w /= of_window[d];
        t /= s.kernel[d];
      }
      if (inside) s.transposed ? f(target, tap, window) : f(window, tap, target);
    }
  }
}

template <class T>
std::vector<T> reference(const ConvShape& s, const std::vector<T>& x, const std::vector<T>& w, const T* bias) {
  const int64_t in = channel_size(s), out = product(s.output, s.axes), taps = product(s.kernel, s.axes);
  const int64_t in_group = s.in_channels / s.groups, out_group = s.out_channels / s.groups;
  std::vector<double> sums(static_cast<size_t>(s.batch * s.out_channels * out));
  for (int64_t b = 0; b < s.batch; ++b) {
    for (int64_t o = 0; o < s.out_channels; ++o) {
      double* y = sums.data() + (b * s.out_channels + o) * out;
      std::fill_n(y, out, bias == nullptr ? 0.0 : static_cast<double>(bias[o]));
      for (int64_t c = 0; c < in_group; ++c) {
        const int64_t channel = o / out_group * in_group + c;
        const T* from = x.data() + (b * s.in_channels + channel) * in;
        const int64_t at = s.transposed ? channel * out_group + o % out_group : o * in_group + c;
        const T* weights = w.data() + at * taps;
        for_each_product(s, [&](int64_t to, int64_t tap, int64_t source) {
          y[to] += static_cast<double>(from[source]) * static_cast<double>(weights[tap]);
        });
      }
    }
  }
  return {sums.begin(), sums.end()};
}

inline std::string describe(const ConvShape& s) {
  std::string text = fmt::format("{}batch {} channels {}->{} groups {}", s.transposed ? "transposed " : "", s.batch,
                                 s.in_channels, s.out_channels, s.groups);
  for (size_t i = 0; i < static_cast<size_t>(s.axes); ++i) {
    text += fmt::format(" [{}->{} kernel {} stride {} dilation {} pad {}]", s.input[i], s.output[i], s.kernel[i],
                        s.stride[i], s.dilation[i], s.pad_begin[i]);
  }
  return text;
}

}  // namespace treadle::kernels
