#pragma once
// Pooling windows over NC<spatial> tensors. The caller has resolved auto_pad, ceil_mode and output sizes. A window may
// extend beyond the padded input; elements beyond it are ignored.

#include <cstdint>

#include "kernels/conv.h"
#include "type/element_type.h"

namespace treadle::kernels {

enum class PoolKind : uint8_t {
  kMax,
  kAverage,          // divides by the elements inside the input
  kAverageWithPads,  // count_include_pad: divides by the elements inside the padded input
  kLp,               // (sum |x|^p)^(1/p)
};

struct PoolShape {
  int axes = 2;
  int64_t batch = 1, channels = 1;
  Spatial input{}, output{}, kernel{};
  Spatial stride{1, 1, 1, 1, 1, 1}, dilation{1, 1, 1, 1, 1, 1};
  Spatial pad_begin{}, pad_end{};
  int p = 2;                          // kLp
  bool column_major_indices = false;  // storage_order of MaxPool: indices within a plane are column-major
};

// The same windows without the taps that never read the input, so the number of taps along an axis is bounded by the
// sizes of the input and output, however large the kernel is. Elements of a window must be counted by the whole shape.
PoolShape narrowed(PoolShape shape);

// Pools the planes [begin, end) of y; there are batch * channels planes. `type`: kFloat and kDouble for all kinds,
// kInt8 and kUint8 for kMax. indices (for kMax) may be null; they count over the whole input tensor. The first of equal
// maxima counts; NaN is greater than any number.
void run_pool(PoolKind kind, ElementType type, const PoolShape& shape, const void* x, void* y, int64_t* indices,
              int64_t begin, int64_t end);

// Pools whole planes of `plane` elements to one element each, for the planes [begin, end).
void run_global_pool(PoolKind kind, ElementType type, int p, int64_t plane, const void* x, void* y, int64_t begin,
                     int64_t end);

// Pools floats whose channels are last, [N, spatial..., C]: rows [begin, end) of y, where rows are batch * all output
// axes except the last. For kMax and averages, and shapes for which pools_nhwc is true. Gives the bits of run_pool.
bool pools_nhwc(const PoolShape& shape);
void run_pool_nhwc(PoolKind kind, const PoolShape& shape, const float* x, float* y, int64_t begin, int64_t end);
// The average of each channel's whole plane, for the images [begin, end).
void run_global_average_nhwc(int64_t plane, int64_t channels, const float* x, float* y, int64_t begin, int64_t end);

}  // namespace treadle::kernels
