#pragma once
// Convolution of f32 with output channels in the lanes. A tile is up to six output positions by a panel of channels;
// each step multiplies a row of the panel by one element of the input for each position. Elements are broadcast, so
// neither the length of rows nor strides nor shifts cost anything, and a tile may reach over the ends of rows.
//
//   sums[position][channel] += x[position + offset of the step] * panel[step][channel]
//
// Steps go tap by tap, through all channels of the input for each. They are taken in blocks, whose part of a panel
// stays in the first-level cache while positions pass by; sums wait in scratch. Where a block belongs to one tap (or
// one row of taps), positions that it reads padding for are left out. At the end sums are transposed to where they
// belong, while bias and addend are added.

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "kernels/isa/conv_geometry.h"
#include "kernels/isa/conv_shift.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

inline constexpr int kPlaces = 6;                                     // output positions in a tile, at most
inline constexpr int kPanelVectors = kVectorRegisters == 32 ? 4 : 2;  // of channels in a panel, at most
inline constexpr int kPanelChannels = kPanelVectors * Lanes<float>::kCount;

// Where a position's input and sums begin.
struct Place {
  int32_t x, sums;
};

struct ChannelTile {
  const float* x;
  const int32_t* offset;  // of each step
  const float* weights;   // [steps][kVectors * lanes]
  int64_t steps;
  const Place* places;
  float* sums;  // of a position: kVectors * lanes
  bool begins;  // there are no sums yet
};

template <int kCount, int kVectors>
void channel_tile(const ChannelTile& t) {
  using L = Lanes<float>;
  L::V sums[kCount][kVectors];
  const float* x[kCount];
  unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
    x[i] = t.x + t.places[i].x;
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
      sums[i][v] = L::zero();
      if (!t.begins) sums[i][v] = L::load(t.sums + t.places[i].sums * kVectors + v * L::kCount);
    });
  });
  const float* weights = t.weights;
#pragma GCC unroll 1
  for (int64_t p = 0; p < t.steps; ++p, weights += kVectors * L::kCount) {
    const int64_t at = t.offset[p];
    L::V row[kVectors];
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { row[v] = L::load(weights + v * L::kCount); });
    unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
      const auto element = L::splat(x[i][at]);
      unrolled<kVectors>([&](auto v)
                             __attribute__((always_inline)) { sums[i][v] = L::mul_add(element, row[v], sums[i][v]); });
    });
  }
  unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
      L::store(t.sums + t.places[i].sums * kVectors + v * L::kCount, sums[i][v]);
    });
  });
}

using ChannelTileFunction = void (*)(const ChannelTile&);

template <int kVectors, int... kCount>
constexpr std::array<ChannelTileFunction, kPlaces> channel_tiles_of(std::integer_sequence<int, kCount...>) {
  return {channel_tile<kCount + 1, kVectors>...};
}
template <int... kVectors>
constexpr std::array<std::array<ChannelTileFunction, kPlaces>, kPanelVectors> channel_tiles(
    std::integer_sequence<int, kVectors...>) {
  return {channel_tiles_of<kVectors + 1>(std::make_integer_sequence<int, kPlaces>())...};
}
// [vectors - 1][positions - 1]
inline constexpr auto kChannelTiles = channel_tiles(std::make_integer_sequence<int, kPanelVectors>());

// What is decided once. Packed weights: per group panels of channels, the last one narrower, [steps][channels]; they
// depend on neither bands nor blocks. Table: offset[k].
struct ChannelsLayout {
  static constexpr int64_t kLanes = Lanes<float>::kCount;
  static constexpr int64_t kSumsBytes = 128 << 10;  // of one unit of work

  explicit ChannelsLayout(const ConvGeometry& geometry) : g(geometry) {
    choose_band();
    pitch = extent(g.width, columns);
    plane = ((extent(g.height, rows) * pitch + kLineElements - 1) / kLineElements | 1) * kLineElements;
    row_bands = (g.height.out + rows - 1) / rows;
    column_bands = (g.width.out + columns - 1) / columns;
    vectors = (g.out_per_group + kLanes - 1) / kLanes;
    panels = (vectors + kPanelVectors - 1) / kPanelVectors;
    chunk = std::clamp<int64_t>(kSumsBytes / (rows * columns * kPanelChannels * int64_t{sizeof(float)}), 1, panels);
    chunk = std::min(chunk, std::max<int64_t>(kChunkChannels / kPanelChannels, 1));
    chunks = (panels + chunk - 1) / chunk;
    choose_blocks();
  }

  static int64_t extent(const Axis& axis, int64_t positions) {
    return (positions - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1;
  }
  int64_t buffer() const { return g.in_per_group * plane; }
  int64_t sums() const { return (rows * columns + kLanes) * chunk * kPanelChannels; }
  int64_t places() const { return 2 * rows * columns; }
  int64_t units() const { return g.shape.batch * g.shape.groups * row_bands * column_bands * chunks; }
  int64_t panel_vectors(int64_t panel) const {
    return std::min<int64_t>(kPanelVectors, vectors - panel * kPanelVectors);
  }

  const ConvGeometry& g;
  int64_t rows = 1, columns = 1;  // of output in a band
  int64_t pitch, plane;           // of the copy of the input
  int64_t row_bands, column_bands;
  int64_t vectors, panels;  // of channels in a group
  int64_t chunk, chunks;    // panels of a unit of work
  int64_t taps_together;    // that a block does not reach beyond: 1, a row, or all
  int64_t steps;            // of a block, at most

 private:
  static constexpr int64_t kLineElements = kLine / int64_t{sizeof(float)};  // planes are an odd number of lines
  static constexpr int64_t kChunkChannels = 128;  // so that threads find parts of small planes
  static constexpr int64_t kMostPositions = 512, kFewestSteps = 48, kMostSteps = 192;

  // Whole rows where they fit.
  void choose_band() {
    const int64_t most = std::max<int64_t>(kBandBytes / int64_t{sizeof(float)} / g.in_per_group, 1);
    columns = std::clamp<int64_t>(g.width.out, 1, kMostPositions);
    while (columns > 2 * kPlaces && extent(g.width, columns) * extent(g.height, 1) > most) columns = (columns + 1) / 2;
    rows = 1;
    while (rows < g.height.out && (rows + 1) * columns <= kMostPositions &&
           extent(g.width, columns) * extent(g.height, rows + 1) <= most) {
      ++rows;
    }
    const int64_t bands = (g.height.out + rows - 1) / rows;
    rows = std::max<int64_t>((g.height.out + bands - 1) / std::max<int64_t>(bands, 1), 1);
  }

  void choose_blocks() {
    const int64_t row = g.in_per_group * g.width.kernel;
    taps_together = g.in_per_group >= kFewestSteps ? 1 : row >= kFewestSteps ? g.width.kernel : g.taps;
    steps = kMostSteps;
  }
};

inline void make_channels_table(const ConvPlan& plan, void* table) {
  const ConvGeometry g(plan.shape);
  const ChannelsLayout layout(g);
  auto* offset = static_cast<int32_t*>(table);
  for (int64_t y = 0; y < g.height.kernel; ++y) {
    for (int64_t x = 0; x < g.width.kernel; ++x) {
      for (int64_t c = 0; c < g.in_per_group; ++c) {
        *offset++ =
            static_cast<int32_t>(c * layout.plane + y * g.height.dilation * layout.pitch + x * g.width.dilation);
      }
    }
  }
}

inline void pack_channels(const ConvPlan& plan, const void* weights, void* packed) {
  constexpr int64_t kLanes = Lanes<float>::kCount;
  const ConvGeometry g(plan.shape);
  const int64_t panels = (g.out_per_group + kPanelChannels - 1) / kPanelChannels;
  const auto* from = static_cast<const float*>(weights);
  auto* to = static_cast<float*>(packed);
  for (int64_t group = 0; group < plan.shape.groups; ++group, from += g.out_per_group * g.k) {
    for (int64_t panel = 0; panel < panels; ++panel) {
      const int64_t first = panel * kPanelChannels;
      const int64_t count = std::min<int64_t>(kPanelChannels, g.out_per_group - first);
      const int64_t width = (count + kLanes - 1) / kLanes * kLanes;
      for (int64_t tap = 0; tap < g.taps; ++tap) {
        for (int64_t c = 0; c < g.in_per_group; ++c, to += width) {
          const float* column = from + first * g.k + c * g.taps + tap;
          for (int64_t i = 0; i < count; ++i) to[i] = column[i * g.k];
          std::fill(to + count, to + width, 0.f);
        }
      }
    }
  }
}

// Units of work one after the other; those of one band share the copy of its input.
class ChannelsBand {
  using L = Lanes<float>;

 public:
  ChannelsBand(const ConvPlan& plan, const ConvGeometry& g, const ChannelsLayout& layout, const ConvOperands& operands)
      : plan_(plan),
        g_(g),
        layout_(layout),
        operands_(operands),
        offset_(static_cast<const int32_t*>(operands.table)),
        sums_(static_cast<float*>(operands.scratch)),
        buffer_(sums_ + layout.sums()),
        places_(reinterpret_cast<Place*>(buffer_ + layout.buffer())) {}

  void run(int64_t unit) {
    const int64_t chunk = unit % layout_.chunks, band = unit / layout_.chunks;
    if (band != band_) find_band(band);
    first_panel_ = chunk * layout_.chunk;
    last_panel_ = std::min(first_panel_ + layout_.chunk, layout_.panels);
    positions_ = rows_ * columns_;
    begins_ = true;
    for (int64_t tap = 0; tap < g_.taps; tap += layout_.taps_together) add_taps(tap);
    for (int64_t panel = first_panel_; panel < last_panel_; ++panel) store_panel(panel);
  }

 private:
  void find_band(int64_t band) {
    band_ = band;
    const auto next = [&](int64_t count) {
      const int64_t index = band % count;
      band /= count;
      return index;
    };
    column_ = next(layout_.column_bands) * layout_.columns;
    row_ = next(layout_.row_bands) * layout_.rows;
    group_ = next(plan_.shape.groups);
    image_ = band;
    rows_ = std::min(layout_.rows, g_.height.out - row_);
    columns_ = std::min(layout_.columns, g_.width.out - column_);
    const float* x = static_cast<const float*>(operands_.x) +
                     (image_ * plan_.shape.in_channels + group_ * g_.in_per_group) * g_.in_plane;
    for (int64_t c = 0; c < g_.in_per_group; ++c) copy_plane(x + c * g_.in_plane, buffer_ + c * layout_.plane);
  }

  void copy_plane(const float* from, float* to) const {
    const Axis& h = g_.height;
    const Axis& w = g_.width;
    const int64_t width = ChannelsLayout::extent(w, columns_), first = w.input_at(column_, 0);
    const int64_t top = h.input_at(row_, 0), height = ChannelsLayout::extent(h, rows_);
    const auto [begin, end] = inside(first, 1, w.in, width);
    const auto [row_begin, row_end] = inside(top, 1, h.in, height);
    fill_zero(to, row_begin * layout_.pitch);
    if (width == w.in && first == 0 && width == layout_.pitch) {
      copy_strided(from + (top + row_begin) * w.in, 1, (row_end - row_begin) * width, to + row_begin * width);
    } else {
      for (int64_t r = row_begin; r < row_end; ++r) {
        float* row = to + r * layout_.pitch;
        fill_zero(row, begin);
        copy_strided(from + (top + r) * w.in + first + begin, 1, end - begin, row + begin);
        fill_zero(row + end, width - end);
      }
    }
    fill_zero(to + row_end * layout_.pitch, (height - row_end) * layout_.pitch);
  }

  // All steps of taps [tap, tap + taps_together), for the positions that any of them reads the input for.
  void add_taps(int64_t tap) {
    const int64_t taps = layout_.taps_together;
    const int64_t places = find_places(tap, taps);
    if (places == 0 && !begins_) return;
    if (begins_ && places < positions_) {
      std::fill_n(sums_, positions_ * layout_.chunk * kPanelChannels, 0.f);
      begins_ = false;
    }
    const int64_t all = taps * g_.in_per_group, blocks = (all + layout_.steps - 1) / layout_.steps;
    const int64_t steps = (all + blocks - 1) / blocks;
    for (int64_t p = 0; p < all; p += steps) {
      add_block(tap * g_.in_per_group + p, std::min(steps, all - p), places);
      begins_ = false;
    }
  }

  // The places of positions that meet the input; their number.
  int64_t find_places(int64_t tap, int64_t taps) {
    Interval rows{0, rows_}, columns{0, columns_};
    if (taps <= g_.width.kernel) rows = meeting(g_.height, row_, tap / g_.width.kernel, rows_);
    if (taps == 1) columns = meeting(g_.width, column_, tap % g_.width.kernel, columns_);
    Place* place = places_;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      int64_t x = r * g_.height.stride * layout_.pitch + columns.begin * g_.width.stride;
      int64_t at = (r * columns_ + columns.begin) * L::kCount;
      for (int64_t q = columns.begin; q < columns.end; ++q, x += g_.width.stride, at += L::kCount) {
        *place++ = {static_cast<int32_t>(x), static_cast<int32_t>(at)};
      }
    }
    return place - places_;
  }

  static Interval meeting(const Axis& axis, int64_t position, int64_t tap, int64_t count) {
    return inside(axis.input_at(position, tap), axis.stride, axis.in, count);
  }

  void add_block(int64_t first, int64_t steps, int64_t places) {
    const float* weights = static_cast<const float*>(operands_.packed_weights) +
                           (group_ * layout_.vectors + first_panel_ * kPanelVectors) * L::kCount * g_.k;
    ChannelTile t;
    t.x = buffer_;
    t.offset = offset_ + first;
    t.steps = steps;
    t.sums = sums_;
    t.begins = begins_;
    for (int64_t panel = first_panel_; panel < last_panel_; ++panel) {
      const int64_t vectors = layout_.panel_vectors(panel);
      const auto& tiles = kChannelTiles[static_cast<size_t>(vectors - 1)];
      t.weights = weights + first * vectors * L::kCount;
      int64_t at = 0;
      for (int64_t left = (places + kPlaces - 1) / kPlaces; left > 0; --left) {
        const int64_t count = (places - at + left - 1) / left;  // about equal ones
        t.places = places_ + at;
        tiles[static_cast<size_t>(count - 1)](t);
        at += count;
      }
      weights += vectors * L::kCount * g_.k;
      t.sums += positions_ * kPanelChannels;
    }
  }

  // Of the sums [position][channel] of a panel, lanes by lanes.
  void store_panel(int64_t panel) const {
    const int64_t vectors = layout_.panel_vectors(panel);
    const float* sums = sums_ + (panel - first_panel_) * positions_ * kPanelChannels;
    const bool whole = columns_ == g_.width.out;
    const int64_t runs = whole ? 1 : rows_, length = whole ? positions_ : columns_;
    for (int64_t v = 0; v < vectors; ++v) {
      const int64_t inner = (panel * kPanelVectors + v) * L::kCount;
      const int64_t channel = group_ * g_.out_per_group + inner;
      const int64_t count = std::min<int64_t>(L::kCount, g_.out_per_group - inner);
      float* y = static_cast<float*>(operands_.y) + (image_ * plan_.shape.out_channels + channel) * g_.out_plane +
                 row_ * g_.width.out + column_;
      for (int64_t run = 0; run < runs; ++run) {
        store_run(sums + run * length * vectors * L::kCount + v * L::kCount, vectors * L::kCount, length, channel,
                  count, y + run * g_.width.out);
      }
    }
  }

  // `length` neighbours in y of `count` channels.
  void store_run(const float* sums, int64_t pitch, int64_t length, int64_t channel, int64_t count, float* y) const {
    const auto* bias = static_cast<const float*>(operands_.bias);
    const auto low = L::splat(plan_.clamp.low), high = L::splat(plan_.clamp.high);
    alignas(kVectorBytes) float square[L::kCount * L::kCount];
    for (int64_t at = 0; at < length; at += L::kCount, sums += L::kCount * pitch) {
      transpose_square(sums, pitch, square, L::kCount);
      const int64_t lanes = std::min<int64_t>(L::kCount, length - at);
      for (int64_t c = 0; c < count; ++c) {
        float* to = y + c * g_.out_plane + at;
        auto value = L::load(square + c * L::kCount);
        if (bias != nullptr) value = L::add(value, L::splat(bias[channel + c]));
        const auto mask = L::mask(static_cast<int>(lanes));
        if (const float* addend = beside(operands_, to)) value = L::add(value, L::load(addend, mask));
        value = L::min(high, L::max(low, value));
        if (lanes == L::kCount) {
          L::store(to, value);
        } else {
          store_first(to, static_cast<int>(lanes), value);
        }
      }
    }
  }

  const ConvPlan& plan_;
  const ConvGeometry& g_;
  const ChannelsLayout& layout_;
  const ConvOperands& operands_;
  const int32_t* offset_;
  float* sums_;
  float* buffer_;
  Place* places_;
  bool begins_ = true;
  int64_t band_ = -1;
  int64_t image_ = 0, group_ = 0, row_ = 0, column_ = 0, rows_ = 0, columns_ = 0, positions_ = 0;
  int64_t first_panel_ = 0, last_panel_ = 0;
};

inline void run_channels(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvGeometry g(plan.shape);
  const ChannelsLayout layout(g);
  ChannelsBand band(plan, g, layout, operands);
  for (int64_t unit = begin; unit < end; ++unit) band.run(unit);
}

// Whether lanes are filled, and products are many enough to pay for turning results. Kernels of 1x1 read the input as
// it lies, unless rows of a few positions would leave vectors unfilled.
inline bool fills_lanes(const ConvGeometry& g) {
  constexpr int64_t kLanes = Lanes<float>::kCount, kFewestProducts = 200, kFewestChannels = 8, kSmallPlane = 256;
  const int64_t padded = (g.out_per_group + kLanes - 1) / kLanes * kLanes;
  if (g.outer_axes > 0 || g.k < kFewestProducts || g.in_per_group < kFewestChannels) return false;
  if (g.out_per_group < 2 * kLanes || padded * 9 > g.out_per_group * 10) return false;
  if (g.out_plane == 0 || g.in_plane == 0) return false;
  const bool steps_over = g.height.stride > 1 || g.width.stride > 1;
  if (g.taps == 1 && (steps_over || g.out_plane > kSmallPlane)) return false;
  const ChannelsLayout layout(g);
  return layout.buffer() <= 2 * kBandBytes / int64_t{sizeof(float)};
}

inline void prepare_channels(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const ChannelsLayout layout(g);
  plan.units = layout.units();
  plan.packed_weight_bytes =
      static_cast<size_t>(plan.shape.groups * layout.vectors * Lanes<float>::kCount * g.k) * sizeof(float);
  plan.scratch_bytes = static_cast<size_t>(layout.sums() + layout.buffer() + layout.places()) * sizeof(float);
  plan.table_bytes = static_cast<size_t>(g.k) * sizeof(int32_t);
  plan.run = run_channels;
  plan.pack = pack_channels;
  plan.make_table = make_channels_table;
}

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
