#pragma once
// What is decided once for a convolution of implicit_gemm.h: bands of the output, the walk over them, the table and the
// order of packed weights.
//
// Table: offset[k]. Packed weights: per group and block of steps tiles of rows, each tile [steps][rows], so that they
// are read from first to last.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int64_t kBandBytes = 256 << 10;  // a band stays in the second-level cache
inline constexpr int64_t kStepsBytes = 36 << 10;  // of B in a block of steps: most of a first-level cache of 48 KB
inline constexpr int kMaxTileVectors = 8;

// Vectors of the widest tile of so many rows.
inline int tile_vectors(int64_t height) {
  constexpr bool kLong = kVectorRegisters == 32;
  return height == 1 ? 8 : height == 2 ? (kLong ? 8 : 4) : height <= 4 && kLong ? 4 : 2;
}

// Calls of(first row, rows) for each tile down `rows` rows. Tiles are of about equal height, the low ones first: a tile
// of one or two rows would have too few sums under way.
template <class T, class Of>
void each_tile(int64_t rows, Of of) {
  const int64_t tiles = tiles_of<T>(rows);
  for (int64_t tile = 0, first = 0; tile < tiles; ++tile) {
    const int64_t count = (rows + tile) / tiles;
    of(first, count);
    first += count;
  }
}

template <class T>
struct ImplicitGemmLayout {
  enum Walk { kByRow, kFlat, kGathered };

  ImplicitGemmLayout(const ConvGeometry& g, Walk of) : walk(of) {
    planes = g.in_per_group * g.outer_taps * g.height.phases() * g.width.phases();
    const int64_t budget = kBandBytes / int64_t{sizeof(T)} / std::max<int64_t>(planes, 1);
    choose_band(g, budget);
    even_bands(g);
    pitch = columns + g.width.largest_shift();
    plane = (rows + g.height.largest_shift()) * pitch;
    row_bands = (g.height.out + rows - 1) / rows;
    column_bands = (g.width.out + columns - 1) / columns;
    steps = walk == kFlat ? g.k : block_of_steps(g);
  }

  int64_t offset(const ConvGeometry& g, int64_t channel, int64_t outer, int64_t y, int64_t x) const {
    const int64_t index =
        ((channel * g.outer_taps + outer) * g.height.phases() + g.height.phase_of(y)) * g.width.phases() +
        g.width.phase_of(x);
    return index * plane + g.height.shift(y) * pitch + g.width.shift(x);
  }
  // A tile of C (kFlat), or a tile's part of B and what its last vector overhangs (kGathered).
  int64_t staging() const {
    return walk == kFlat       ? kMaxRows<T> * kMaxTileVectors * Lanes<T>::kCount
           : walk == kGathered ? (steps * 2 + 2) * Lanes<T>::kCount
                               : 0;
  }
  int64_t buffer() const {
    return planes * plane + kMaxTileVectors * Lanes<T>::kCount;
  }  // the last vector may overhang

  static constexpr int64_t kBandStep = 2 * Lanes<T>::kCount;  // columns that tiles fill

  int64_t planes;
  int64_t rows, columns;  // of output in a band
  int64_t pitch, plane;
  int64_t row_bands, column_bands;
  Walk walk;
  int64_t steps;  // of k that all tiles take before the next ones

 private:
  // About equal blocks whose part of B fills most of the first-level cache; one where no second tile comes back to it.
  static int64_t block_of_steps(const ConvGeometry& g) {
    if (g.out_per_group <= balanced_rows<T>(g.out_per_group)) return g.k;
    constexpr int64_t kMost = kStepsBytes / (2 * Lanes<T>::kCount * int64_t{sizeof(T)});
    const int64_t blocks = (g.k + kMost - 1) / kMost;
    return (g.k + blocks - 1) / blocks;
  }

  // Whole rows, unless so few of them fit into `budget` elements that much of the input would be copied for two bands.
  void choose_band(const ConvGeometry& g, int64_t budget) {
    constexpr double kWorthwhile = 0.9;
    const int64_t down = g.height.largest_shift(), right = g.width.largest_shift();
    const int64_t height = std::max<int64_t>(g.height.out, 1), width = std::max<int64_t>(g.width.out, 1);
    double least = 0;
    const auto consider = [&](int64_t c) {
      const int64_t r = std::clamp<int64_t>(budget / (c + right) - down, 1, height);
      const auto extent = [](int64_t part, int64_t all, int64_t shift) {
        return part == all ? 1.0 : static_cast<double>(part + shift) / static_cast<double>(part);
      };
      const double spilled = static_cast<double>((r + down) * (c + right)) / static_cast<double>(2 * budget + 1);
      const double cost = extent(r, height, down) * extent(c, width, right) * std::max(1.0, spilled);
      if (least != 0 && cost >= least * kWorthwhile) return;
      least = cost;
      rows = r;
      columns = c;
    };
    consider(width);
    for (int64_t c = (width - 1) / kBandStep * kBandStep; c > 0; c -= kBandStep) consider(c);
  }

  // Two threads find parts of one size: an even number of bands of about equal height.
  void even_bands(const ConvGeometry& g) {
    constexpr int64_t kWorthSharing = 1 << 19;  // multiply-adds: some 10 us, longer than waking a thread
    if (g.out_per_group * g.out_plane * g.k < kWorthSharing) return;
    const int64_t height = std::max<int64_t>(g.height.out, 1), bands = (height + rows - 1) / rows;
    const int64_t across = g.shape.batch * g.shape.groups * ((g.width.out + columns - 1) / columns);
    const int64_t even = across % 2 == 0 ? bands : bands + bands % 2;
    rows = (height + even - 1) / even;
  }
};

template <class T>
void make_shift_table(const ConvPlan& plan, void* table) {
  const ConvGeometry g(plan.shape);
  const ImplicitGemmLayout<T> layout(g, ImplicitGemmLayout<T>::kByRow);  // offsets are those of every walk
  int64_t* offset = static_cast<int64_t*>(table);
  StopPoll stop;
  for (int64_t c = 0; c < g.in_per_group; ++c) {
    if (stop.after(kPackedNs * static_cast<double>(g.taps))) return;
    for (int64_t outer = 0; outer < g.outer_taps; ++outer) {
      for (int64_t y = 0; y < g.height.kernel; ++y) {
        for (int64_t x = 0; x < g.width.kernel; ++x) *offset++ = layout.offset(g, c, outer, y, x);
      }
    }
  }
}

// kWhole: all steps are one block.
template <class T, bool kWhole>
void pack_implicit_gemm(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape);
  const T* from = static_cast<const T*>(weights);
  T* to = static_cast<T*>(packed);
  const int64_t steps = kWhole ? g.k : ImplicitGemmLayout<T>(g, ImplicitGemmLayout<T>::kByRow).steps;
  for (int64_t group = 0; group < plan.shape.groups; ++group) {
    for (int64_t p = 0; p < g.k; p += steps) {
      const int64_t deep = std::min(steps, g.k - p);
      bool goes_on = true;
      each_tile<T>(g.out_per_group, [&](int64_t row, int64_t count) {
        if (!goes_on) return;
        const T* filters = from + (group * g.out_per_group + row) * g.k + p;
        goes_on = in_pieces(deep, kPackedNs * static_cast<double>(count), stop, [&](int64_t begin, int64_t end) {
          pack_panel(filters + begin, 1, g.k, end - begin, count, count, to + begin * count);
        });
        to += deep * count;
      });
      if (!goes_on) return;
    }
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
