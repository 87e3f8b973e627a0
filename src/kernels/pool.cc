#include "kernels/pool.h"

#include <algorithm>

#include "kernels/isa/each.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels {

PoolShape narrowed(PoolShape shape) {
  for (size_t i = 0; i < static_cast<size_t>(shape.axes); ++i) {
    // Offset of the last position
    const int64_t dilation = shape.dilation[i], last = (shape.output[i] - 1) * shape.stride[i];
    // Taps that are before the input even at the last position, and taps that are behind it even at the first.
    const int64_t before = std::max<int64_t>(0, shape.pad_begin[i] - std::max<int64_t>(last, 0)) / dilation;
    const int64_t until = (shape.input[i] + shape.pad_begin[i] + dilation - 1) / dilation;
    const int64_t first = std::min(before, shape.kernel[i] - 1);
    shape.kernel[i] = std::clamp<int64_t>(until - first, 1, shape.kernel[i] - first);
    shape.pad_begin[i] -= first * dilation;
  }
  return shape;
}

namespace {

// Windows are read at every offset. With vectors of 64 bytes each such read crosses a cache line, with 32 bytes only
// every second one does. So AVX2 is faster where a window only compares. Rows narrower than both vectors are not read
// in this way.
Isa isa_of_windows(PoolKind kind, const PoolShape& shape, const int64_t* indices) {
  constexpr int64_t kNarrow = 8;
  const Isa isa = preferred_isa();
  if (isa != Isa::kAvx512 || !has_kernels(Isa::kAvx2) || kind != PoolKind::kMax || indices != nullptr) return isa;
  return shape.axes > 0 && shape.output[static_cast<size_t>(shape.axes - 1)] < kNarrow ? isa : Isa::kAvx2;
}

}  // namespace

void run_pool(PoolKind kind, ElementType type, const PoolShape& shape, const void* x, void* y, int64_t* indices,
              int64_t begin, int64_t end) {
  return TREADLE_OF_ISA(isa_of_windows(kind, shape, indices), run_pool)(kind, type, shape, x, y, indices, begin, end);
}

void run_global_pool(PoolKind kind, ElementType type, int p, int64_t plane, const void* x, void* y, int64_t begin,
                     int64_t end) {
  return TREADLE_OF_ISA(preferred_isa(), run_global_pool)(kind, type, p, plane, x, y, begin, end);
}

bool pools_nhwc(const PoolShape& whole) {
  constexpr int64_t kMostRows = 64, kMostElements = 4096, kMostLanes = 16;  // limits of isa/pool_rows.h
  if (whole.axes < 1 || whole.axes > 2) return false;
  const PoolShape shape = narrowed(whole);
  const auto w = static_cast<size_t>(shape.axes - 1);
  const int64_t lanes = shape.output[w] + kMostLanes, reach = (shape.kernel[w] - 1) * shape.dilation[w];
  return (shape.axes == 1 || shape.kernel[0] <= kMostRows) && shape.pad_begin[w] >= 0 &&
         lanes * shape.stride[w] + reach < kMostElements && shape.pad_begin[w] + kMostLanes < kMostElements;
}

void run_pool_nhwc(PoolKind kind, const PoolShape& shape, const float* x, float* y, int64_t begin, int64_t end) {
  return TREADLE_OF_ISA(preferred_isa(), run_pool_nhwc)(kind, shape, x, y, begin, end);
}

void run_global_average_nhwc(int64_t plane, int64_t channels, const float* x, float* y, int64_t begin, int64_t end) {
  return TREADLE_OF_ISA(preferred_isa(), run_global_average_nhwc)(plane, channels, x, y, begin, end);
}

}  // namespace treadle::kernels
