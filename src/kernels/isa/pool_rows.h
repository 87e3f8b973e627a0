#pragma once
// Maxima and sums of windows in two steps: the rows that a row of windows covers become one row, down the columns; then
// the columns of each window become one element. The row between waits in a buffer with its padding around it, so that
// neither step has borders to look after.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/isa/conv_geometry.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int64_t kPoolRowElements = 4096;  // of the buffer
inline constexpr int64_t kPoolRows = 64;           // that a window covers, at most

template <class T, bool kMax>
class PoolRows {
  using L = Lanes<T>;
  using V = typename L::V;

 public:
  static bool fits(const ConvGeometry& g) {
    return g.width.pad >= 0 && g.outer_taps * g.height.kernel <= kPoolRows && elements(g) <= kPoolRowElements;
  }

  explicit PoolRows(const ConvGeometry& g)
      : g_(g), span_(std::clamp<int64_t>(elements(g) - g.width.pad, 0, g.width.in)) {
    std::fill_n(buffer_, elements(g), kMax ? -std::numeric_limits<T>::infinity() : T(0));
  }

  // One row of windows; `x` is the channel.
  void run(const T* x, int64_t outer, int64_t row, T* y) {
    const T* rows[kPoolRows];
    int64_t count = 0;
    for (int64_t tap = 0; tap < g_.outer_taps; ++tap) {
      const int64_t plane = g_.outer_plane(outer, tap);
      const auto [begin, end] = inside(g_.height.input_at(row, 0), g_.height.dilation, g_.height.in, g_.height.kernel);
      for (int64_t ky = begin; plane >= 0 && ky < end; ++ky) {
        rows[count++] = x + plane * g_.in_plane + g_.height.input_at(row, ky) * g_.width.in;
      }
    }
    down(rows, count);
    across(y);
  }

 private:
  static V start() { return L::splat(kMax ? -std::numeric_limits<T>::infinity() : T(0)); }
  static V take(V best, V x) {
    if constexpr (kMax) return L::max_or_nan(best, x);
    return L::add(best, x);
  }

  // What the last vector of windows reads up to.
  static int64_t elements(const ConvGeometry& g) {
    const int64_t lanes = (g.width.out + L::kCount - 1) / L::kCount * L::kCount;
    return std::max((lanes - 1) * g.width.stride + (g.width.kernel - 1) * g.width.dilation + 1,
                    g.width.pad + int64_t{L::kCount});
  }

  void down(const T* const* rows, int64_t count) {
    T* to = buffer_ + g_.width.pad;
    if (span_ < L::kCount) {
      const auto mask = L::mask(static_cast<int>(span_));
      V best = start();
      for (int64_t r = 0; r < count; ++r) best = take(best, L::load(rows[r], mask));
      L::store(to, mask, best);
      return;
    }
    for (int64_t i = 0; i < span_; i += L::kCount) {
      const int64_t at = std::min(i, span_ - L::kCount);  // the last vector overlaps the one before
      V best = start();
      for (int64_t r = 0; r < count; ++r) best = take(best, L::load(rows[r] + at));
      L::store(to + at, best);
    }
  }

  void across(T* y) const {
    const Axis& w = g_.width;
    for (int64_t i = 0; i < w.out; i += L::kCount) {
      const T* from = buffer_ + i * w.stride;
      V best = start();
      for (int64_t kx = 0; kx < w.kernel; ++kx, from += w.dilation) best = take(best, read(from));
      if (w.out - i >= L::kCount) {
        L::store(y + i, best);
      } else {
        L::store(y + i, L::mask(static_cast<int>(w.out - i)), best);
      }
    }
  }

  V read(const T* p) const {
    const int64_t stride = g_.width.stride;
    if (stride == 1) return L::load(p);
    if (stride == 2) return load_even<T>(p);
    T gathered[L::kCount];
    for (int i = 0; i < L::kCount; ++i) gathered[i] = p[i * stride];
    return L::load(gathered);
  }

  const ConvGeometry& g_;
  int64_t span_;  // elements of an input row that any window reads
  alignas(kVectorBytes) T buffer_[kPoolRowElements];
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
