#pragma once
// Maxima and sums of windows whose channels are the last axis.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/axes.h"
#include "kernels/isa/lanes.h"
#include "kernels/isa/pool_rows.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Windows over channels that are the last axis; lanes hold channels. Each window takes its elements in the order of
// PoolRows: down its columns, then across them.
template <PoolTake kTake>
class PoolNhwc {
  using L = Lanes<float>;
  using V = L::V;

 public:
  explicit PoolNhwc(const ConvGeometry& g, int64_t channels) : g_(g), channels_(channels) {}

  // Pools one row of windows. `x`: the image. `elements(column)`: the divisor of sums.
  template <class Elements>
  void row(const float* x, int64_t row, float* y, Elements&& elements) const {
    const auto [top, bottom] = inside(g_.height.input_at(row, 0), g_.height.dilation, g_.height.in, g_.height.kernel);
    const int64_t down = g_.height.dilation * g_.width.in * channels_;
    const float* first = x + g_.height.input_at(row, top) * g_.width.in * channels_;
    for (int64_t column = 0; column < g_.width.out; ++column, y += channels_) {
      const auto [left, right] = inside(g_.width.input_at(column, 0), g_.width.dilation, g_.width.in, g_.width.kernel);
      const float* from = first + g_.width.input_at(column, left) * channels_;
      const auto divisor = kTake == PoolTake::kSum ? static_cast<float>(std::max(elements(column), 1.0)) : 1.f;
      channels({from, bottom - top, right - left, down, divisor}, y);
    }
  }

 private:
  struct Window {
    const float* from;
    int64_t rows, columns;
    int64_t down;  // from one row to the next
    float divisor;
  };

  void channels(const Window& w, float* y) const {
    const auto load = [](const float* at) { return L::load(at); };
    const auto store = [](float* at, V v) { L::store(at, v); };
    int64_t c = 0;
    for (; c + 4 * L::kCount <= channels_; c += 4 * L::kCount) vectors<4>(w, c, y + c, load, store);
    for (; c + L::kCount <= channels_; c += L::kCount) vectors<1>(w, c, y + c, load, store);
    if (c == channels_) return;
    const auto mask = L::mask(static_cast<int>(channels_ - c));
    vectors<1>(
        w, c, y + c, [mask](const float* at) { return L::load(at, mask); },
        [mask](float* at, V v) { L::store(at, mask, v); });
  }

  // Pools kVectors vectors of channels, from channel c on.
  template <int kVectors, class Load, class Store>
  void vectors(const Window& w, int64_t c, float* y, Load&& load, Store&& store) const {
    V best[kVectors];
    std::fill_n(best, kVectors, start());
    const float* column = w.from + c;
    for (int64_t kx = 0; kx < w.columns; ++kx, column += g_.width.dilation * channels_) {
      V of_column[kVectors];
      std::fill_n(of_column, kVectors, start());
      const float* at = column;
      for (int64_t ky = 0; ky < w.rows; ++ky, at += w.down) {
        for (int v = 0; v < kVectors; ++v) of_column[v] = take(of_column[v], load(at + v * L::kCount));
      }
      for (int v = 0; v < kVectors; ++v) best[v] = take(best[v], of_column[v]);
    }
    for (int v = 0; v < kVectors; ++v) {
      if constexpr (kTake == PoolTake::kSum) best[v] = L::div(best[v], L::splat(w.divisor));
      store(y + v * L::kCount, best[v]);
    }
  }

  static V start() { return L::splat(kTake == PoolTake::kSum ? 0.f : -std::numeric_limits<float>::infinity()); }
  static V take(V best, V x) {
    if constexpr (kTake == PoolTake::kMax) return L::max(best, x);
    if constexpr (kTake == PoolTake::kMaxOrNan) return L::max_or_nan(best, x);
    return L::add(best, x);
  }

  const ConvGeometry& g_;
  const int64_t channels_;
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
