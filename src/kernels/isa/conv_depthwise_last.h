#pragma once
// Depthwise convolution of f32 with channels last, [row][column][channel], in x and y: lanes hold channels, so that
// neither the length of rows nor strides cost anything. A tile is some neighbouring output columns by two vectors of
// channels. Taps off the plane read zeros, as they do where channels come first; taps are taken in the order of that
// method, so that sums have the same bits.
//
// Packed weights: [tap][channels], rounded up to whole vectors, taps in the order in which they are added.

#include <algorithm>
#include <cstdint>

#include "base/in_pieces.h"
#include "kernels/isa/conv_shift.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline int64_t padded_channels(int64_t channels) {
  constexpr int64_t kLanes = Lanes<float>::kCount;
  return (channels + kLanes - 1) / kLanes * kLanes;
}

// kByColumn: taps go down the columns of the kernel, otherwise along its rows.
template <bool kByColumn>
void pack_depthwise_last(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape);
  const auto* from = static_cast<const float*>(weights);
  auto* to = static_cast<float*>(packed);
  const int64_t channels = plan.shape.out_channels;
  for (int64_t i = 0; i < g.taps; ++i, to += padded_channels(channels)) {
    const int64_t tap = kByColumn ? i % g.height.kernel * g.width.kernel + i / g.height.kernel : i;
    const bool goes_on = in_pieces(channels, kPackedNs, stop, [&](int64_t begin, int64_t end) {
      for (int64_t c = begin; c < end; ++c) to[c] = from[c * g.taps + tap];
    });
    if (!goes_on) return;
    std::fill(to + channels, to + padded_channels(channels), 0.f);
  }
}

inline size_t depthwise_last_weight_bytes(const ConvGeometry& g) {
  return static_cast<size_t>(g.taps * padded_channels(g.shape.out_channels)) * sizeof(float);
}

// A vector of sums to where it belongs; `c`: its first channel. kTail: only the lanes in `tail` are channels.
template <bool kTail>
[[gnu::always_inline]] inline void store_last(const ConvOperands& operands, Lanes<float>::V value, int64_t c,
                                              Lanes<float>::Mask tail, Lanes<float>::V low, Lanes<float>::V high,
                                              float* to) {
  using L = Lanes<float>;
  const auto read = [&](const float* p)
                        __attribute__((always_inline)) { return kTail ? L::load(p, tail) : L::load(p); };
  const auto* bias = static_cast<const float*>(operands.bias);
  value = L::add(value, bias == nullptr ? L::zero() : read(bias + c));
  if (const float* addend = beside(operands, to)) value = L::add(value, read(addend));
  value = L::min(high, L::max(low, value));
  if (kTail) {
    L::store(to, tail, value);
  } else {
    L::store(to, value);
  }
}

class DepthwiseLast {
  using L = Lanes<float>;
  using V = L::V;

 public:
  static constexpr int kColumns = kVectorRegisters == 32 ? 10 : 5, kVectors = 2;

  static size_t scratch_bytes(const ConvGeometry& g) {
    return static_cast<size_t>(padded_channels(g.shape.out_channels)) * sizeof(float) +
           static_cast<size_t>(g.taps * kColumns) * sizeof(const float*);
  }

  DepthwiseLast(const ConvPlan& plan, const ConvGeometry& g, const ConvOperands& operands)
      : g_(g),
        operands_(operands),
        channels_(plan.shape.out_channels),
        zeros_(static_cast<float*>(operands.scratch)),
        places_(reinterpret_cast<const float**>(zeros_ + padded_channels(channels_))),
        low_(L::splat(plan.clamp.low)),
        high_(L::splat(plan.clamp.high)) {
    std::fill_n(zeros_, padded_channels(channels_), 0.f);
  }

  // One row of an image, from column `begin` to column `end`.
  void row(const float* x, int64_t row, float* y) {
    for (int64_t column = 0; column < g_.width.out; column += kColumns) {
      columns_ = std::min<int64_t>(kColumns, g_.width.out - column);
      find_places(x, row, column);
      float* to = y + column * channels_;
      int64_t c = 0;
      for (; c + kVectors * L::kCount <= channels_; c += kVectors * L::kCount) tile<kVectors, false>(c, to + c);
      for (; c + L::kCount <= channels_; c += L::kCount) tile<1, false>(c, to + c);
      if (c < channels_) tile<1, true>(c, to + c);
      if (stop_.after(kProductNs * static_cast<double>(columns_ * channels_ * g_.taps))) return;
    }
  }

 private:
  // Where each tap of each column of a tile reads; columns beyond the row read zeros.
  void find_places(const float* x, int64_t row, int64_t column) {
    const Axis &h = g_.height, &w = g_.width;
    const float** place = places_;
    for (int64_t i = 0; i < g_.taps; ++i) {
      const int64_t ky = i / w.kernel, kx = i % w.kernel;
      const int64_t at_y = h.input_at(row, ky);
      const bool is_row = at_y >= 0 && at_y < h.in;
      int64_t at_x = w.input_at(column, kx);
      for (int64_t j = 0; j < kColumns; ++j, at_x += w.stride) {
        const bool is_inside = is_row && j < columns_ && at_x >= 0 && at_x < w.in;
        *place++ = is_inside ? x + (at_y * w.in + at_x) * channels_ : zeros_;
      }
    }
  }

  template <int kCount, bool kTail>
  void tile(int64_t c, float* y) const {
    if (columns_ > kColumns / 2) return tile_of<kColumns, kCount, kTail>(c, y);
    if (columns_ > 1) return tile_of<(kColumns + 1) / 2, kCount, kTail>(c, y);
    tile_of<1, kCount, kTail>(c, y);
  }

  template <int kWide, int kCount, bool kTail>
  void tile_of(int64_t c, float* y) const {
    const auto tail = L::mask(static_cast<int>(std::min<int64_t>(L::kCount, channels_ - c)));
    const auto read = [&](const float* p)
                          __attribute__((always_inline)) { return kTail ? L::load(p, tail) : L::load(p); };
    V sums[kWide][kCount];
    unrolled<kWide>([&](auto j) __attribute__((always_inline)) {
      unrolled<kCount>([&](auto v) __attribute__((always_inline)) { sums[j][v] = L::zero(); });
    });
    const float* weights = static_cast<const float*>(operands_.packed_weights) + c;
    const int64_t pitch = padded_channels(channels_);
    const float* const* place = places_;
    for (int64_t tap = 0; tap < g_.taps; ++tap, weights += pitch, place += kColumns) {
      V factors[kCount];
      unrolled<kCount>([&](auto v) __attribute__((always_inline)) { factors[v] = L::load(weights + v * L::kCount); });
      unrolled<kWide>([&](auto j) __attribute__((always_inline)) {
        const float* p = place[j] + c;
        unrolled<kCount>([&](auto v) __attribute__((always_inline)) {
          sums[j][v] = L::mul_add(factors[v], read(p + v * L::kCount), sums[j][v]);
        });
      });
    }
    unrolled<kWide>([&](auto j) __attribute__((always_inline)) {
      if (j >= columns_) return;
      unrolled<kCount>([&](auto v) __attribute__((always_inline)) {
        const int64_t first = v * L::kCount;
        store_last<kTail>(operands_, sums[j][v], c + first, tail, low_, high_, y + j * channels_ + first);
      });
    });
  }

  const ConvGeometry& g_;
  const ConvOperands& operands_;
  const int64_t channels_;
  float* zeros_;          // of a position
  const float** places_;  // [tap][column of a tile]
  const V low_, high_;
  int64_t columns_ = 0;  // of the tile
  StopPoll stop_;
};

inline void run_depthwise_last(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  DepthwiseLast last(plan, g, operands);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t image = unit / g.height.out, channels = plan.shape.out_channels;
    last.row(static_cast<const float*>(operands.x) + image * g.in_plane * channels, unit % g.height.out,
             static_cast<float*>(operands.y) + unit * g.width.out * channels);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
