// Depthwise convolution of f32 with channels last for the kernels of depthwise_rows.h. A tile is some output rows
// by some neighbouring output columns by a vector of channels, so that what is loaded from an input row is used for
// each output row whose window meets it. Sums take taps in the order of depthwise_rows.h, down the columns of the
// kernel, and have the same bits. Taps off the plane read zeros.
//
// Packed weights: as in depthwise_nhwc.h, by column.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/depthwise_nhwc.h"
#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/method.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// kTall: rows of the kernel. kDown: stride from row to row.
template <int kTall, int kDown>
class DepthwiseNhwcRows {
  using L = Lanes<float>;
  using V = L::V;

 public:
  static constexpr int kRows = 4, kColumns = kVectorRegisters == 32 ? 4 : 2;  // of a tile, at most

  static size_t scratch_bytes(const ConvGeometry& g) {
    return static_cast<size_t>(padded_channels(g.shape.out_channels)) * sizeof(float) +
           static_cast<size_t>(most_places(g)) * (sizeof(const float*) + sizeof(int64_t));
  }

  DepthwiseNhwcRows(const ConvPlan& plan, const ConvGeometry& g, const ConvOperands& operands)
      : g_(g),
        operands_(operands),
        channels_(plan.shape.out_channels),
        zeros_(static_cast<float*>(operands.scratch)),
        places_(reinterpret_cast<const float**>(zeros_ + padded_channels(channels_))),
        apart_(reinterpret_cast<int64_t*>(places_ + most_places(g))),
        low_(L::splat(plan.clamp.low)),
        high_(L::splat(plan.clamp.high)) {
    std::fill_n(zeros_, padded_channels(channels_), 0.f);
  }

  // Units of work: some output rows of an image by some channels, in this order.
  static int64_t units(const ConvGeometry& g) { return g.shape.batch * row_parts(g) * channel_parts(g); }

  void run(int64_t begin, int64_t end) {
    const int64_t rows = row_parts(g_), parts = channel_parts(g_);
    for (int64_t unit = begin; unit < end;) {
      const int64_t first = unit % parts, last = std::min(parts, first + end - unit);
      channel_begin_ = channel_at(first);
      channel_end_ = channel_at(last);
      band(unit / parts / rows, unit / parts % rows);
      unit += last - first;
    }
  }

 private:
  template <int kHigh>
  static constexpr int kInputRows = (kHigh - 1) * kDown + kTall;
  static int64_t most_places(const ConvGeometry& g) { return g.width.kernel * kInputRows<kRows> * kColumns; }

  static int64_t row_parts(const ConvGeometry& g) { return (g.height.out + kRows - 1) / kRows; }
  // Of wide images with few rows, so that threads find parts of one size.
  static int64_t channel_parts(const ConvGeometry& g) {
    constexpr int64_t kUnits = 8,
                      kFewestChannels = 64;  // parts for two threads to take in turns, of four vectors at least
    const int64_t rows = std::max<int64_t>(g.shape.batch * row_parts(g), 1);
    return std::clamp<int64_t>(g.shape.out_channels / kFewestChannels, 1, (kUnits + rows - 1) / rows);
  }
  int64_t channel_at(int64_t part) const {
    const int64_t vectors = padded_channels(channels_) / L::kCount;
    return std::min(vectors * part / channel_parts(g_) * L::kCount, channels_);
  }

  // As many rows of an image as a tile has.
  void band(int64_t image, int64_t part) {
    row_ = part * kRows;
    rows_ = std::min<int64_t>(kRows, g_.height.out - row_);
    x_ = static_cast<const float*>(operands_.x) + image * g_.in_plane * channels_;
    float* y = static_cast<float*>(operands_.y) + (image * g_.height.out + row_) * g_.width.out * channels_;
    rows_ > kRows / 2 ? tiles<kRows>(y) : tiles<kRows / 2>(y);
  }

  template <int kHigh>
  void tiles(float* y) {
    find_distances<kHigh>();
    for (column_ = 0; column_ < g_.width.out; column_ += kColumns, y += kColumns * channels_) {
      columns_ = std::min<int64_t>(kColumns, g_.width.out - column_);
      find_places<kHigh>();
      int64_t c = channel_begin_;
      for (; c + L::kCount <= channel_end_; c += L::kCount) tile<kHigh, false>(c, y + c);
      if (c < channel_end_) tile<kHigh, true>(c, y + c);
      const int64_t products = rows_ * columns_ * (channel_end_ - channel_begin_) * g_.taps;
      if (stop_.after(kProductNs * static_cast<double>(products))) return;
    }
  }

  // From the first element that a tile reads to the others, [tap of a row][input row][column].
  template <int kHigh>
  void find_distances() {
    int64_t* to = apart_;
    for (int64_t kx = 0; kx < g_.width.kernel; ++kx) {
      for (int64_t i = 0; i < kInputRows<kHigh>; ++i) {
        for (int64_t j = 0; j < kColumns; ++j)
          *to++ = (i * g_.width.in + g_.width.input_at(j, kx) + g_.width.pad) * channels_;
      }
    }
  }

  // Where a tile's elements lie; what is off the plane, or beyond the row, lies in the row of zeros.
  template <int kHigh>
  void find_places() {
    const Axis &h = g_.height, &w = g_.width;
    const int64_t top = h.input_at(row_, 0), left = w.input_at(column_, 0);
    const int64_t right = w.input_at(column_ + kColumns - 1, w.kernel - 1);
    const float** place = places_;
    if (top >= 0 && top + kInputRows<kHigh> <= h.in && left >= 0 && right < w.in && columns_ == kColumns) {
      const float* first = x_ + (top * w.in + left) * channels_;
      const int64_t count = w.kernel * kInputRows<kHigh> * kColumns;
      for (int64_t i = 0; i < count; ++i) place[i] = first + apart_[i];
      return;
    }
    for (int64_t kx = 0; kx < w.kernel; ++kx) {
      for (int64_t i = 0; i < kInputRows<kHigh>; ++i) {
        const bool is_row = top + i >= 0 && top + i < h.in;
        const float* row = x_ + (top + i) * w.in * channels_;
        for (int64_t j = 0; j < kColumns; ++j) {
          const int64_t at = w.input_at(column_ + j, kx);
          *place++ = is_row && j < columns_ && at >= 0 && at < w.in ? row + at * channels_ : zeros_;
        }
      }
    }
  }

  template <int kHigh, bool kTail>
  void tile(int64_t c, float* y) const {
    const auto tail = L::mask(static_cast<int>(std::min<int64_t>(L::kCount, channels_ - c)));
    V sums[kHigh][kColumns];
    unrolled<kHigh>([&](auto r) __attribute__((always_inline)) {
      unrolled<kColumns>([&](auto j) __attribute__((always_inline)) { sums[r][j] = L::zero(); });
    });
    const float* weights = static_cast<const float*>(operands_.packed_weights) + c;
    const int64_t pitch = padded_channels(channels_);
    const float* const* place = places_;
    for (int64_t kx = 0; kx < g_.width.kernel; ++kx) {
      V factors[kTall];
      unrolled<kTall>([&](auto ky) __attribute__((always_inline)) { factors[ky] = L::load(weights + ky * pitch); });
      unrolled<kInputRows<kHigh>>([&](auto i) __attribute__((always_inline)) {
        unrolled<kColumns>([&](auto j) __attribute__((always_inline)) {
          const float* p = place[i * kColumns + j] + c;
          const V x = kTail ? L::load(p, tail) : L::load(p);
          unrolled<kHigh>([&](auto r) __attribute__((always_inline)) {
            const int tap = i - r * kDown;
            if (tap >= 0 && tap < kTall) sums[r][j] = L::mul_add(factors[tap], x, sums[r][j]);
          });
        });
      });
      weights += kTall * pitch;
      place += kInputRows<kHigh> * kColumns;
    }
    unrolled<kHigh>([&](auto r) __attribute__((always_inline)) {
      if (r >= rows_) return;
      unrolled<kColumns>([&](auto j) __attribute__((always_inline)) {
        if (j >= columns_) return;
        float* to = y + (r * g_.width.out + j) * channels_;
        store_nhwc<kTail>(operands_, sums[r][j], c, tail, low_, high_, to);
      });
    });
  }

  const ConvGeometry& g_;
  const ConvOperands& operands_;
  const int64_t channels_;
  float* zeros_;          // of a position
  const float** places_;  // of a tile: [tap of a row][input row][column]
  int64_t* apart_;
  const V low_, high_;
  const float* x_ = nullptr;  // of the image
  int64_t channel_begin_ = 0, channel_end_ = 0;
  int64_t row_ = 0, rows_ = 0, column_ = 0, columns_ = 0;  // of the tile
  StopPoll stop_;
};

template <int kTall, int kDown>
void run_depthwise_nhwc_rows(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  DepthwiseNhwcRows<kTall, kDown>(plan, g, operands).run(begin, end);
}

template <int kTall>
void prepare_depthwise_nhwc_rows_of(ConvPlan& plan, const ConvGeometry& g) {
  const bool skips = g.height.stride == 2;
  plan.run = skips ? run_depthwise_nhwc_rows<kTall, 2> : run_depthwise_nhwc_rows<kTall, 1>;
  plan.scratch_bytes =
      skips ? DepthwiseNhwcRows<kTall, 2>::scratch_bytes(g) : DepthwiseNhwcRows<kTall, 1>::scratch_bytes(g);
}

void prepare_depthwise_nhwc_rows(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  plan.units = DepthwiseNhwcRows<3, 1>::units(g);
  plan.packed_weight_bytes = depthwise_nhwc_weight_bytes(g);
  plan.pack = pack_depthwise_nhwc<true>;
  switch (g.height.kernel) {
    case 3:
      return prepare_depthwise_nhwc_rows_of<3>(plan, g);
    case 5:
      return prepare_depthwise_nhwc_rows_of<5>(plan, g);
    default:
      return prepare_depthwise_nhwc_rows_of<7>(plan, g);
  }
}

bool fits(const ConvGeometry& g, ComputeType type) {
  return type == ComputeType::kF32 && is_depthwise_by_rows(g) && has_nhwc_operands(g);
}

// Loads are vectors of the input and of weights; copies what is read under a mask; elements the places that tiles read;
// begun tiles.
ConvWork work(const ConvGeometry& g, ComputeType) {
  constexpr int64_t kRows = DepthwiseNhwcRows<3, 1>::kRows, kColumns = DepthwiseNhwcRows<3, 1>::kColumns;
  const int64_t channels = g.shape.out_channels, vectors = vectors_of<float>(channels);
  const int64_t tall = g.height.kernel, wide = g.width.kernel;
  ConvWork all;
  const auto add = [&](int64_t bands, int64_t rows) {
    const int64_t high = rows > kRows / 2 ? kRows : kRows / 2;
    const int64_t input_rows = (high - 1) * g.height.stride + tall, places = wide * input_rows * kColumns;
    const double tiles = count(g.shape.batch * bands * parts_of(g.width.out, kColumns));
    all.products += tiles * count(vectors) * tile_products(wide, high * kColumns, tall);
    all.loads += tiles * count(vectors * wide * (input_rows * kColumns + tall));
    if (channels % Lanes<float>::kCount != 0) all.copies += tiles * count(places);
    all.elements += tiles * count(places);
    all.stores += tiles * count(vectors * kColumns * rows);
    all.begun += tiles * count(vectors);
  };
  if (g.height.out >= kRows) add(g.height.out / kRows, kRows);
  if (g.height.out % kRows != 0) add(1, g.height.out % kRows);
  return all;
}

}  // namespace

constexpr ConvMethod kDepthwiseNhwcRows = {
    .name = "depthwise-nhwc-rows",
    .fits = fits,
    .work = work,
    .order = sums_in<SumOrder::kColumns>,
    .prepare = prepare_depthwise_nhwc_rows,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
