// Pooling. pool_rows.h computes maxima and averages of floats. Other pooling builds an output row tap by tap: each tap
// of the window adds one strided input row, so lanes hold neighbouring windows, and every window takes its elements in
// order.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "base/stop.h"
#include "kernels/costs.h"
#include "kernels/isa/conv/direct_copy.h"
#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/entry.h"
#include "kernels/isa/lanes.h"
#include "kernels/isa/pool_elements.h"
#include "kernels/isa/pool_nhwc.h"
#include "kernels/isa/pool_rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {
namespace {

// The windows as a ConvGeometry: one channel in, one out, and only the taps that read the input somewhere.
ConvShape window_shape(const PoolShape& whole) {
  const PoolShape p = narrowed(whole);
  ConvShape s;
  s.axes = p.axes;
  s.input = p.input;
  s.output = p.output;
  s.kernel = p.kernel;
  s.stride = p.stride;
  s.dilation = p.dilation;
  s.pad_begin = p.pad_begin;
  return s;
}

// The number of taps of the window at `position` that lie in [low, high), in coordinates of the input.
int64_t taps_inside(const Axis& a, int64_t position, int64_t low, int64_t high) {
  const int64_t first = position * a.stride - a.pad;
  if (a.dilation == 1) {  // avoids slow divisions
    return std::max<int64_t>(0, std::min(first + a.kernel, high) - std::max(first, low));
  }
  const int64_t skipped = first >= low ? 0 : (low - first + a.dilation - 1) / a.dilation;
  const int64_t until = first >= high ? 0 : (high - 1 - first) / a.dilation + 1;
  return std::max<int64_t>(0, std::min(until, a.kernel) - skipped);
}

template <class T>
class Pool {
 public:
  Pool(PoolKind kind, const PoolShape& shape, const ConvGeometry& g) : kind_(kind), shape_(shape), g_(g) {
    if (shape.axes >= 1) width_ = counted_axis(shape.axes - 1);
    if (shape.axes >= 2) height_ = counted_axis(shape.axes - 2);
  }

  // plane() and plane_with_indices() end early if they are told to stop.
  void plane(const T* x, T* y) const {
    StopPoll stop;
    for (int64_t outer = 0; outer < g_.outer_out; ++outer) {
      for (int64_t row = 0; row < g_.height.out; ++row, y += g_.width.out) {
        if (stop.after(costs::kPoolTapNs * row_taps_)) return;
        std::fill_n(y, g_.width.out, kind_ == PoolKind::kMax ? lowest<T>() : T(0));
        for (int64_t tap = 0; tap < g_.outer_taps; ++tap) {
          const int64_t index = g_.outer_plane(outer, tap);
          if (index >= 0) rows_of_plane(x + index * g_.in_plane, row, y);
        }
        finish_row(outer, row, y);
      }
    }
  }

  // The largest element of each window and its index; -1 for a window without elements.
  void plane_with_indices(const T* x, int64_t base, T* y, int64_t* indices) const {
    StopPoll stop;
    for (int64_t outer = 0; outer < g_.outer_out; ++outer) {
      for (int64_t row = 0; row < g_.height.out; ++row, y += g_.width.out, indices += g_.width.out) {
        if (stop.after(costs::kPoolIndexTapNs * row_taps_)) return;
        for (int64_t begin = 0; begin < g_.width.out; begin += kFound) {
          const int64_t count = std::min(kFound, g_.width.out - begin);
          if (g_.in_channel() <= std::numeric_limits<int32_t>::max()) {
            find<int32_t>(x, outer, row, begin, count, base, y + begin, indices + begin);
          } else {
            find<int64_t>(x, outer, row, begin, count, base, y + begin, indices + begin);
          }
        }
      }
    }
  }

  // Pools planes one after the other, through the same buffers.
  template <PoolTake kTake>
  void by_rows(const T* x, T* y, int64_t planes) const {
    T divisors[kPoolRowElements + Lanes<T>::kCount];
    std::fill(divisors, divisors + g_.width.out + Lanes<T>::kCount, T(1));
    for (int64_t i = 0; kTake == PoolTake::kSum && i < g_.width.out; ++i) divisors[i] = divisor(elements_of_columns(i));
    PoolRows<T, kTake> rows(g_, divisors);
    StopPoll stop;
    const T* end = y + planes * g_.out_channel();
    for (int64_t plane = 0; plane < planes; ++plane, x += g_.in_channel()) {
      for (int64_t outer = 0; outer < g_.outer_out; ++outer) {
        rows.choose_planes(x, outer);
        const double others = kTake == PoolTake::kSum ? elements_of_outer(outer) : 1;
        for (int64_t row = 0; row < g_.height.out; row += rows.band()) {
          const int64_t count = std::min(rows.band(), g_.height.out - row);
          if (stop.after(costs::kPoolTapNs * row_taps_ * static_cast<double>(count))) return;
          rows.run(row, count, y, end, [&](int64_t r) { return divisor(others * elements_of_height(r)); });
          y += count * g_.width.out;
        }
      }
    }
  }

  // The divisor of the sum of a window at a row and a column. For at most two axes.
  double elements(int64_t row, int64_t column) const { return elements_of_height(row) * elements_of_columns(column); }

 private:
  void rows_of_plane(const T* plane, int64_t row, T* y) const {
    for (int64_t ky = 0; ky < g_.height.kernel; ++ky) {
      const int64_t in_y = g_.height.input_at(row, ky);
      if (in_y < 0 || in_y >= g_.height.in) continue;
      for (int64_t kx = 0; kx < g_.width.kernel; ++kx) {
        const Axis& w = g_.width;
        const int64_t first = w.input_at(0, kx);
        const auto [begin, end] = inside(first, w.stride, w.in, w.out);
        if (begin < end) add_row(plane + in_y * w.in + first + begin * w.stride, end - begin, y + begin);
      }
    }
  }

  void add_row(const T* from, int64_t count, T* y) const {
    if (kind_ == PoolKind::kMax) {
      strided(from, count, [&](int64_t i, T x) { y[i] = take_max(y[i], x); });
    } else if constexpr (std::is_floating_point_v<T>) {
      if (kind_ != PoolKind::kLp) {
        strided(from, count, [&](int64_t i, T x) { y[i] += x; });
      } else if (shape_.p == 2) {
        strided(from, count, [&](int64_t i, T x) { y[i] += x * x; });
      } else if (shape_.p == 1) {
        strided(from, count, [&](int64_t i, T x) { y[i] += std::abs(x); });
      } else {
        strided(from, count, [&](int64_t i, T x) { y[i] += std::pow(std::abs(x), static_cast<T>(shape_.p)); });
      }
    }
  }

  template <class F>
  void strided(const T* from, int64_t count, F&& f) const {
    const int64_t stride = g_.width.stride;
    if (stride == 1) {
      for (int64_t i = 0; i < count; ++i) f(i, from[i]);
    } else if (stride == 2) {
      for (int64_t i = 0; i < count; ++i) f(i, from[2 * i]);
    } else {
      for (int64_t i = 0; i < count; ++i) f(i, from[i * stride]);
    }
  }

  void finish_row(int64_t outer, int64_t row, T* y) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (kind_ == PoolKind::kLp) {
        if (shape_.p == 1) return;
        for (int64_t i = 0; i < g_.width.out; ++i) {
          y[i] = shape_.p == 2 ? std::sqrt(y[i]) : std::pow(y[i], T(1) / static_cast<T>(shape_.p));
        }
      } else if (kind_ != PoolKind::kMax) {
        divide_row(outer, row, y);
      }
    }
  }

  // A window without elements has the sum 0, so any divisor serves.
  static T divisor(double elements) { return static_cast<T>(std::max(elements, 1.0)); }

  void divide_row(int64_t outer, int64_t row, T* y) const {
    const double others = elements_of_outer(outer) * elements_of_height(row);
    for (int64_t i = 0; i < g_.width.out; ++i) y[i] /= divisor(others * elements_of_columns(i));
  }

  // The number of elements of a window along each axis. A double, because padding counts and may exceed the range of
  // integers.
  double elements_of_columns(int64_t column) const {
    return count(width_, column, shape_.axes >= 1 ? shape_.pad_end[shape_.axes - 1] : 0);
  }
  double elements_of_height(int64_t row) const {
    return shape_.axes >= 2 ? count(height_, row, shape_.pad_end[shape_.axes - 2]) : 1;
  }

  double elements_of_outer(int64_t outer) const {
    double others = 1;
    for (int i = g_.outer_axes - 1; i >= 0; --i) {
      const Axis axis = counted_axis(i);
      others *= count(axis, outer % axis.out, shape_.pad_end[i]);
      outer /= axis.out;
    }
    return others;
  }

  // The axis with all taps of its windows. The axes of g_ have only the taps that read the input somewhere.
  Axis counted_axis(int i) const {
    return {shape_.input[i],  shape_.output[i],   shape_.kernel[i],
            shape_.stride[i], shape_.dilation[i], shape_.pad_begin[i]};
  }

  double count(const Axis& axis, int64_t position, int64_t pad_end) const {
    const bool pads = kind_ == PoolKind::kAverageWithPads;
    return static_cast<double>(taps_inside(axis, position, pads ? -axis.pad : 0, pads ? axis.in + pad_end : axis.in));
  }

  // Finds the extremes of columns [begin, begin + count) of a row of windows: each tap is compared with the best
  // elements so far.
  template <class Index>
  void find(const T* x, int64_t outer, int64_t row, int64_t begin, int64_t count, int64_t base, T* y,
            int64_t* indices) const {
    Index at[kFound];
    T best[kFound];
    std::fill_n(at, count, Index(-1));
    std::fill_n(best, count, lowest<T>());
    const Axis &h = g_.height, &w = g_.width;
    for (int64_t tap = 0; tap < g_.outer_taps; ++tap) {
      const int64_t plane = g_.outer_plane(outer, tap);
      const auto [top, bottom] = inside(h.input_at(row, 0), h.dilation, h.in, h.kernel);
      for (int64_t ky = top; plane >= 0 && ky < bottom; ++ky) {
        const int64_t row_at = plane * g_.in_plane + h.input_at(row, ky) * w.in;
        for (int64_t kx = 0; kx < w.kernel; ++kx) {
          const int64_t first = w.input_at(begin, kx);
          const auto [left, right] = inside(first, w.stride, w.in, count);
          const auto from = static_cast<Index>(row_at + first + left * w.stride);
          take_better(x + from, from, right - left, best + left, at + left);
        }
      }
    }
    std::copy_n(best, count, y);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = shape_.column_major_indices && at[i] >= 0 ? column_major(at[i]) : at[i];
      indices[i] = index < 0 ? -1 : base + index;
    }
  }

  // The first of equal elements stays, and so does the first NaN.
  template <class Index>
  void take_better(const T* x, Index from, int64_t count, T* best, Index* at) const {
    const auto step = static_cast<Index>(g_.width.stride);
    strided(x, count, [=](int64_t i, T value) {
      const bool better = (at[i] < 0) | (value > best[i]) | ((value != value) & (best[i] == best[i]));
      best[i] = better ? value : best[i];
      at[i] = better ? static_cast<Index>(from + static_cast<Index>(i) * step) : at[i];
    });
  }

  int64_t column_major(int64_t index) const {
    int64_t result = 0, total = g_.in_channel();
    for (int i = shape_.axes - 1; i >= 0; --i) {
      total /= shape_.input[i];
      result += index % shape_.input[i] * total;
      index /= shape_.input[i];
    }
    return result;
  }

  static constexpr int64_t kFound = 128;

  PoolKind kind_;
  const PoolShape& shape_;
  const ConvGeometry& g_;
  Axis width_, height_;
  const double row_taps_ = static_cast<double>(g_.width.out * g_.taps);
};

#if defined(__AVX2__)

// Planes whose rows do not fill a vector: lanes hold planes, and some vectors of planes are transposed at a time.
class PoolTransposed {
  static constexpr int64_t kPlanes = 4 * Lanes<float>::kCount;
  static constexpr int64_t kElements = 1 << 11;  // of a vector of planes, which stays in the cache

 public:
  static bool fits(const ConvGeometry& g) {
    return g.outer_axes == 0 && g.width.pad >= 0 && g.width.out < Lanes<float>::kCount &&
           (g.in_channel() + g.out_channel()) * kPlanes <= 4 * kElements && g.in_channel() > 0 && g.out_channel() > 0;
  }

  static void run(PoolKind kind, const Pool<float>& pool, const ConvGeometry& g, const float* x, float* y,
                  int64_t planes) {
    alignas(kVectorBytes) float transposed[4 * kElements] = {};
    StopPoll stop;
    for (int64_t count = 0, plane = 0; plane < planes; plane += count) {
      count = std::min(kPlanes, planes - plane);
      if (stop.after(costs::kPoolTapNs * static_cast<double>(g.out_channel() * g.taps * count))) return;
      const float* const from = x + plane * g.in_channel();
      transpose_planes(from, g.in_channel(), count, g.in_channel(), transposed, kPlanes);
      float* const results = transposed + g.in_channel() * kPlanes;
      if (kind != PoolKind::kMax) {
        rows<PoolTake::kSum>(pool, g, transposed, results);
      } else if (any_nan(from, count * g.in_channel())) {
        rows<PoolTake::kMaxOrNan>(pool, g, transposed, results);
      } else {
        rows<PoolTake::kMax>(pool, g, transposed, results);
      }
      transpose_planes(results, kPlanes, g.out_channel(), count, y + plane * g.out_channel(), g.out_channel());
    }
  }

 private:
  template <PoolTake kTake>
  static void rows(const Pool<float>& pool, const ConvGeometry& g, const float* transposed, float* results) {
    const PoolNhwc<kTake> windows(g, kPlanes);
    for (int64_t row = 0; row < g.height.out; ++row) {
      windows.row(transposed, row, results + row * g.width.out * kPlanes,
                  [&](int64_t column) { return pool.elements(row, column); });
    }
  }
};

#endif

// The number of planes that are searched for NaN before their maxima are taken: few enough to stay in the cache.
inline int64_t planes_at_once(const ConvGeometry& g) {
  constexpr int64_t kElements = 1 << 14;
  return std::max<int64_t>(kElements / std::max<int64_t>(g.in_channel(), 1), 1);
}

template <class T>
void pool_planes(PoolKind kind, const PoolShape& shape, const void* x, void* y, int64_t* indices, int64_t begin,
                 int64_t end) {
  const ConvShape window = window_shape(shape);
  const ConvGeometry g(window);
  const Pool<T> pool(kind, shape, g);
  if constexpr (std::is_floating_point_v<T>) {
    if (indices == nullptr && kind != PoolKind::kLp && PoolRows<T, PoolTake::kMax>::fits(g)) {
      const T* from = static_cast<const T*>(x) + begin * g.in_channel();
      T* to = static_cast<T*>(y) + begin * g.out_channel();
#if defined(__AVX2__)
      if constexpr (std::is_same_v<T, float>) {
        if (PoolTransposed::fits(g)) return PoolTransposed::run(kind, pool, g, from, to, end - begin);
      }
#endif
      if (kind != PoolKind::kMax) return pool.template by_rows<PoolTake::kSum>(from, to, end - begin);
      for (int64_t some, plane = begin; plane < end; plane += some) {
        some = std::min(planes_at_once(g), end - plane);
        const T* here = static_cast<const T*>(x) + plane * g.in_channel();
        any_nan(here, some * g.in_channel()) ? pool.template by_rows<PoolTake::kMaxOrNan>(here, to, some)
                                             : pool.template by_rows<PoolTake::kMax>(here, to, some);
        to += some * g.out_channel();
      }
      return;
    }
  }
  for (int64_t plane = begin; plane < end; ++plane) {
    const T* from = static_cast<const T*>(x) + plane * g.in_channel();
    T* to = static_cast<T*>(y) + plane * g.out_channel();
    if (indices != nullptr) {
      pool.plane_with_indices(from, plane * g.in_channel(), to, indices + plane * g.out_channel());
    } else {
      pool.plane(from, to);
    }
  }
}

template <PoolTake kTake>
void pool_rows_nhwc(PoolKind kind, const PoolShape& shape, const float* x, float* y, int64_t begin, int64_t end) {
  const ConvShape window = window_shape(shape);
  const ConvGeometry g(window);
  const Pool<float> pool(kind, shape, g);
  const PoolNhwc<kTake> last(g, shape.channels);
  StopPoll stop;
  for (int64_t i = begin;
       i < end && !stop.after(costs::kPoolTapNs * static_cast<double>(g.width.out * g.taps * shape.channels)); ++i) {
    const int64_t image = i / g.height.out, row = i % g.height.out;
    last.row(x + image * g.in_plane * shape.channels, row, y + i * g.width.out * shape.channels,
             [&](int64_t column) { return pool.elements(row, column); });
  }
}

}  // namespace

void run_pool_nhwc(PoolKind kind, const PoolShape& shape, const float* x, float* y, int64_t begin, int64_t end) {
  return kind == PoolKind::kMax ? pool_rows_nhwc<PoolTake::kMaxOrNan>(kind, shape, x, y, begin, end)
                                : pool_rows_nhwc<PoolTake::kSum>(kind, shape, x, y, begin, end);
}

void run_pool(PoolKind kind, ElementType type, const PoolShape& shape, const void* x, void* y, int64_t* indices,
              int64_t begin, int64_t end) {
  switch (type) {
    case ElementType::kDouble:
      return pool_planes<double>(kind, shape, x, y, indices, begin, end);
    case ElementType::kInt8:
      return pool_planes<int8_t>(kind, shape, x, y, indices, begin, end);
    case ElementType::kUint8:
      return pool_planes<uint8_t>(kind, shape, x, y, indices, begin, end);
    default:
      return pool_planes<float>(kind, shape, x, y, indices, begin, end);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
