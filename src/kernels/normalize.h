#pragma once
// Softmax and its relatives, and normalisation of rows. Float types only; narrow floats are computed in f32.

#include <cstddef>
#include <cstdint>

#include "type/element_type.h"

namespace treadle::kernels {

enum class SoftmaxKind : uint8_t { kSoftmax, kLogSoftmax };

// Along the middle axis of [outer, n, inner]. Sums are computed as in reduce.h. `out` may be `input`.
void softmax(SoftmaxKind kind, ElementType type, const void* input, void* out, size_t outer, size_t n, size_t inner);

enum class NormKind : uint8_t {
  kLayer,  // (x - mean) / sqrt(variance + epsilon)
  kRms,    // x / sqrt(mean of squares + epsilon)
};

struct NormRows {
  NormKind kind = NormKind::kLayer;
  ElementType type = ElementType::kFloat;        // type of x
  ElementType scale_type = ElementType::kFloat;  // type of scale, bias and y
  size_t rows = 0;
  size_t n = 0;  // elements of a row
  double epsilon = 1e-5;

  // scale, bias: n elements each, or null for 1 and 0. mean, inv_std: one float per row (double if x is double), or
  // null. y may be x. Mean and variance are computed in two passes, with sums as in reduce.h. The normalised value is
  // rounded to scale_type before it is scaled, as in the operator's function body with narrow types.
  void operator()(const void* x, const void* scale, const void* bias, void* y, void* mean, void* inv_std) const;
};

}  // namespace treadle::kernels
