#pragma once
// Kernels of one tap.

#include "kernels/isa/conv/axes.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Every input position is an output position.
inline bool is_pointwise(const ConvShape& s) {
  if (s.transposed) return false;
  for (int i = 0; i < s.axes; ++i) {
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad_begin[i] != 0 || s.input[i] != s.output[i]) return false;
  }
  return true;
}

// Some input positions are left out, and none is read outside of the input.
inline bool is_strided_pointwise(const ConvGeometry& g) {
  const auto leaves_out = [](const Axis& a) { return a.kernel == 1 && a.pad == 0 && (a.out - 1) * a.stride < a.in; };
  return !g.shape.transposed && g.outer_axes == 0 && leaves_out(g.height) && leaves_out(g.width);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
