#pragma once
// Pooling windows over NC<spatial> tensors. The caller has resolved auto_pad, ceil_mode and output sizes: a window may
// reach over the end of the padded input, what lies outside is left out.

#include <cstdint>

#include "kernels/conv.h"
#include "type/element_type.h"

namespace treadle::kernels {

enum class PoolKind : uint8_t {
  kMax,
  kAverage,          // over the elements inside the input
  kAverageWithPads,  // count_include_pad: over the elements inside the padded input
  kLp,               // (sum |x|^p)^(1/p)
};

struct PoolShape {
  int axes = 2;
  int64_t batch = 1, channels = 1;
  Spatial input{}, output{}, kernel{};
  Spatial stride{1, 1, 1, 1, 1, 1}, dilation{1, 1, 1, 1, 1, 1};
  Spatial pad_begin{}, pad_end{};
  int p = 2;                          // kLp
  bool column_major_indices = false;  // storage_order of MaxPool: numbering inside a channel's plane
};

// The same windows without the taps that no position reads the input with: as many are left along an axis as the input
// and the positions have elements, whatever the kernel. The elements of a window are counted by the whole shape.
PoolShape narrowed(PoolShape shape);

// Planes (batch * channels) [begin, end) of y. `type`: kFloat and kDouble for all kinds, kInt8 and kUint8 for kMax.
// indices (kMax only) may be null; they count over the whole input tensor. Strict maximum, first one wins, NaN wins.
void run_pool(PoolKind kind, ElementType type, const PoolShape& shape, const void* x, void* y, int64_t* indices,
              int64_t begin, int64_t end);

// The whole plane into one element: `plane` elements for each of rows [begin, end).
void run_global_pool(PoolKind kind, ElementType type, int p, int64_t plane, const void* x, void* y, int64_t begin,
                     int64_t end);

// Of floats with their channels last, [N, spatial..., C]: rows (batch * all output axes but the last one) [begin, end)
// of y. kMax and averages, for shapes that pools_last is true of. Results have the bits of run_pool.
bool pools_last(const PoolShape& shape);
void run_pool_last(PoolKind kind, const PoolShape& shape, const float* x, float* y, int64_t begin, int64_t end);
// The average of the whole plane, for each channel of images [begin, end).
void run_global_average_last(int64_t plane, int64_t channels, const float* x, float* y, int64_t begin, int64_t end);

}  // namespace treadle::kernels
