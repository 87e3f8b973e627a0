#pragma once
// Square convolutions for tests that need large ones.

#include "kernels/conv.h"

namespace treadle::kernels {

// Over planes of `plane` x `plane`, without padding.
inline ConvShape square_conv(int64_t in, int64_t out, int64_t kernel, int64_t groups, int64_t plane) {
  ConvShape s;
  s.in_channels = in, s.out_channels = out, s.groups = groups;
  for (size_t i = 0; i < 2; ++i) s.kernel[i] = kernel, s.input[i] = plane, s.output[i] = plane - kernel + 1;
  return s;
}

inline ConvShape transposed(ConvShape s) {
  s.transposed = true;
  for (size_t i = 0; i < 2; ++i) s.output[i] = s.input[i] + s.kernel[i] - 1;
  return s;
}

// How many weights it has.
inline size_t weights_of(const ConvShape& s) {
  return static_cast<size_t>(s.in_channels * s.out_channels / s.groups * s.kernel[0] * s.kernel[1]);
}

}  // namespace treadle::kernels
