// Depthwise convolution of f32 with channels last. A tile is some neighbouring output columns by two vectors of
// channels. Taps are taken in the order of depthwise.cc, so that sums have the same bits.

#include "kernels/isa/conv/depthwise_nhwc.h"

#include <algorithm>
#include <cstdint>

#include "base/in_pieces.h"
#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/method.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

class DepthwiseNhwc {
  using L = Lanes<float>;
  using V = L::V;

 public:
  static constexpr int kColumns = kVectorRegisters == 32 ? 10 : 5, kVectors = 2;

  static size_t scratch_bytes(const ConvGeometry& g) {
    return static_cast<size_t>(padded_channels(g.shape.out_channels)) * sizeof(float) +
           static_cast<size_t>(g.taps * kColumns) * sizeof(const float*);
  }

  DepthwiseNhwc(const ConvPlan& plan, const ConvGeometry& g, const ConvOperands& operands)
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
        store_nhwc<kTail>(operands_, sums[j][v], c + first, tail, low_, high_, y + j * channels_ + first);
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

void run_depthwise_nhwc(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  DepthwiseNhwc last(plan, g, operands);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t image = unit / g.height.out, channels = plan.shape.out_channels;
    last.row(static_cast<const float*>(operands.x) + image * g.in_plane * channels, unit % g.height.out,
             static_cast<float*>(operands.y) + unit * g.width.out * channels);
  }
}

void prepare_depthwise_nhwc(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  plan.units = plan.shape.batch * g.height.out;
  plan.packed_weight_bytes = depthwise_nhwc_weight_bytes(g);
  plan.scratch_bytes = DepthwiseNhwc::scratch_bytes(g);
  plan.run = run_depthwise_nhwc;
  plan.pack = pack_depthwise_nhwc<false>;
}

bool fits(const ConvGeometry& g, ComputeType type) {
  return type == ComputeType::kF32 && g.is_depthwise() && has_nhwc_operands(g) && g.out_plane > 0 && g.in_plane > 0;
}

// Loads are weights; copies what is read under a mask; elements the places that tiles read; begun tiles.
ConvWork work(const ConvGeometry& g, ComputeType) {
  constexpr int64_t kLanes = Lanes<float>::kCount, kWidest = DepthwiseNhwc::kColumns;
  const int64_t channels = g.shape.out_channels, pairs = channels / (2 * kLanes);
  const int64_t single = vectors_of<float>(channels % (2 * kLanes));
  ConvWork all;
  const auto add = [&](int64_t tiles, int64_t columns) {
    const int64_t wide = columns > kWidest / 2 ? kWidest : columns > 1 ? (kWidest + 1) / 2 : 1;
    const double times = count(g.shape.batch * g.height.out * tiles);
    all.products +=
        times * (count(pairs) * tile_products(g.taps, wide, 2) + count(single) * tile_products(g.taps, wide, 1));
    all.loads += times * count(g.taps * (pairs * 2 + single));
    if (channels % kLanes != 0) all.copies += times * count(wide * g.taps);
    all.elements += times * count(g.taps * kWidest);
    all.stores += times * count(columns * vectors_of<float>(channels));
    all.begun += times * count(pairs + single);
  };
  if (g.width.out >= kWidest) add(g.width.out / kWidest, kWidest);
  if (g.width.out % kWidest != 0) add(1, g.width.out % kWidest);
  return all;
}

}  // namespace

constexpr ConvMethod kDepthwiseNhwc = {
    .name = "depthwise-nhwc",
    .fits = fits,
    .work = work,
    .order = sums_in<SumOrder::kWeights>,
    .prepare = prepare_depthwise_nhwc,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
