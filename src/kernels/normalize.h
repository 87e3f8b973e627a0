#pragma once
// Softmax and its relatives, and normalisation of rows. Float types only; narrow floats are computed in f32.

#include <cstddef>
#include <cstdint>

#include "type/element_type.h"

namespace treadle::kernels {

enum class SoftmaxKind : uint8_t { kSoftmax, kLogSoftmax };

// Along the middle axis of [outer, n, inner]. Sums as in reduce.h. `out` may be `input`.
void softmax(SoftmaxKind kind, ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner);

enum class NormKind : uint8_t {
  kLayer,  // (x - mean) / sqrt(variance + epsilon)
  kRms,    // x / sqrt(mean of squares + epsilon)
};

struct NormRows {
  NormKind kind = NormKind::kLayer;
  ElementType type = ElementType::kFloat;        // of x
  ElementType scale_type = ElementType::kFloat;  // of scale, bias and y
  size_t rows = 0;
  size_t n = 0;  // elements of a row
  double epsilon = 1e-5;

  // scale, bias: n elements each, null for 1 and 0. mean, inv_std: one float (double when x is double) per row, or
  // null. Mean and variance are computed in two passes, summed as in reduce.h; the normalised value is rounded to
  // scale_type before it is scaled, as the operator's function body does when the types are narrow. y may be x.
  void operator()(const void* x, const void* scale, const void* bias, void* y, void* mean, void* inv_std) const;
};

}  // namespace treadle::kernels
