#pragma once
// What is decided once where output channels lie in the lanes: bands of positions, panels of channels, blocks of steps.
//
// A convolution has one output for each position. A transposed one has stride x stride outputs for each position of its
// input, the phases: outputs a stride apart meet the input with the same taps, so that each phase is a convolution of
// its own with a part of the taps. All phases read one copy of the input, whose elements lie [row][column][channel].

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/implicit_gemm_layout.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// The taps of one phase along an axis: `first_tap`, `first_tap + tap_step`, ...; they read the input `first`,
// `first + spacing`, ... elements behind where the position's window begins.
struct PhaseTaps {
  int64_t taps = 0, first_tap = 0, tap_step = 1;
  int64_t first = 0, spacing = 1;
};

class ChannelAxis {
 public:
  ChannelAxis(const Axis& axis, bool transposed)
      : in(axis.in),
        out(axis.out),
        phases(transposed ? axis.stride : 1),
        positions((axis.out + phases - 1) / phases),
        step(transposed ? 1 : axis.stride),
        axis_(axis),
        transposed_(transposed) {
    if (!transposed) {
      begin = -axis.pad;
      window = (axis.kernel - 1) * axis.dilation + 1;
      return;
    }
    int64_t end = begin = shift_of_tap(axis.kernel - 1, phase_of_tap(axis.kernel - 1));
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      const int64_t shift = shift_of_tap(tap, phase_of_tap(tap));
      begin = std::min(begin, shift);
      end = std::max(end, shift);
    }
    window = end - begin + 1;
  }

  PhaseTaps phase(int64_t phase) const {
    if (!transposed_) return {axis_.kernel, 0, 1, 0, axis_.dilation};
    PhaseTaps found;
    const int64_t apart = axis_.stride / std::gcd(axis_.stride, axis_.dilation);
    for (int64_t tap = 0; tap < std::min(apart, axis_.kernel); ++tap) {
      if (phase_of_tap(tap) != phase) continue;
      found.taps = (axis_.kernel - 1 - tap) / apart + 1;
      found.first_tap = tap + (found.taps - 1) * apart;
      found.tap_step = -apart;
      found.first = shift_of_tap(found.first_tap, phase) - begin;
      found.spacing = axis_.dilation / std::gcd(axis_.stride, axis_.dilation);
    }
    return found;
  }

  int64_t taps() const { return axis_.kernel; }
  // Of the input, what `count` positions read.
  int64_t extent(int64_t count) const { return (count - 1) * step + window; }

  int64_t in, out;
  int64_t phases;           // outputs of a position
  int64_t positions, step;  // how far the input moves from one position to the next
  int64_t begin, window;    // of the input: what position 0 reads

 private:
  int64_t phase_of_tap(int64_t tap) const {
    const int64_t rest = (tap * axis_.dilation - axis_.pad) % axis_.stride;
    return rest < 0 ? rest + axis_.stride : rest;
  }
  int64_t shift_of_tap(int64_t tap, int64_t phase) const {
    return (phase + axis_.pad - tap * axis_.dilation) / axis_.stride;
  }

  Axis axis_;
  bool transposed_;
};

// Channels that tiles take together.
struct ChannelsForm {
  int64_t lanes, panel_vectors;  // of a vector; of a panel, at most
  int64_t element_channels = 1;  // of the input in an element of the copy
  int64_t most_positions = 512;  // of a band: sums of a panel of 64 channels take kSumsBytes
};

// Packed weights: per group panels of channels, the last one narrower, [tap][element of the input][channels]. They
// depend on neither bands nor blocks.
struct DirectLayout {
  static constexpr int64_t kSumsBytes = 128 << 10;  // of one unit of work; they stay in the second-level cache
  static constexpr int64_t kElementBytes = 4;

  DirectLayout(const ConvGeometry& g, const ChannelsForm& of)
      : form(of),
        height(g.height, g.shape.transposed),
        width(g.width, g.shape.transposed),
        depth((g.in_per_group + form.element_channels - 1) / form.element_channels),
        steps(g.height.kernel * g.width.kernel * depth),
        groups(g.shape.groups),
        batch(g.shape.batch),
        out_channels(g.shape.out_channels) {
    choose_stride();
    choose_band();
    pitch = width.extent(columns);
    column_bands = (width.positions + columns - 1) / columns;
    vectors = (g.out_per_group + form.lanes - 1) / form.lanes;
    panels = std::max<int64_t>((vectors + form.panel_vectors - 1) / form.panel_vectors, 1);
    choose_chunks();
  }

  int64_t phases() const { return height.phases * width.phases; }
  int64_t panel_channels() const { return form.panel_vectors * form.lanes; }
  int64_t panel_vectors(int64_t panel) const {
    return std::min(form.panel_vectors, vectors - panel * form.panel_vectors);
  }
  int64_t panel_elements() const { return steps * panel_channels(); }      // but for the last one
  int64_t group_elements() const { return steps * vectors * form.lanes; }  // of packed weights
  int64_t places() const { return rows * columns; }
  int64_t buffer() const { return height.extent(rows) * pitch * stride; }
  int64_t panel_sums() const { return (rows * columns + form.lanes) * panel_channels(); }
  int64_t sums() const { return panel_sums() * phases() * chunk; }
  int64_t units() const { return batch * groups * row_bands * column_bands * chunks; }

  ChannelsForm form;
  ChannelAxis height, width;
  int64_t depth;   // elements of a position of the copy
  int64_t stride;  // from one of them to the next
  int64_t steps;   // of a panel
  int64_t groups, batch;
  int64_t out_channels;           // of all groups
  int64_t rows = 1, columns = 1;  // of positions in a band
  int64_t pitch;                  // of the copy, in positions
  int64_t row_bands, column_bands;
  int64_t vectors, panels;  // of channels in a group
  int64_t chunk, chunks;    // panels of a unit of work

 private:
  static constexpr int64_t kChunkChannels = 128;  // so that threads find parts of small planes
  static constexpr int64_t kFewestColumns = 12;   // two tiles

  // Positions a multiple of 1 KiB apart would share few lines of the first-level cache.
  void choose_stride() {
    constexpr int64_t kApart = 1024 / kElementBytes, kMore = 64 / kElementBytes;
    stride = depth % kApart == 0 ? depth + kMore : depth;
  }

  void choose_chunks() {
    chunk = std::clamp<int64_t>(kSumsBytes / std::max<int64_t>(rows * columns * phases() * panel_channels() * 4, 1), 1,
                                panels);
    chunk = std::min(chunk, std::max<int64_t>(kChunkChannels / panel_channels(), 1));
    chunks = (panels + chunk - 1) / chunk;
    chunk = (panels + chunks - 1) / chunks;
    choose_bands();
  }

  // Two threads find parts of one size: somewhat lower bands where those leave one of the threads less to wait for.
  void choose_bands() {
    constexpr double kWorthwhile = 0.97;
    const bool even = panels % chunks == 0 && vectors % form.panel_vectors == 0;
    const int64_t across = batch * groups * column_bands * (even ? chunks : 1), most = rows;
    double least = std::numeric_limits<double>::infinity();
    for (int64_t r = most; r > 0 && r >= (most + 1) / 2; --r) {
      const double share = busier_share(r, across);
      if (share >= least * kWorthwhile) continue;
      least = share;
      rows = r;
    }
    row_bands = (height.positions + rows - 1) / rows;
  }

  // Of all work, that of the busier of two threads that take parts in turns: bands of `r` rows, each in `across` parts.
  double busier_share(int64_t r, int64_t across) const {
    const int64_t whole = height.positions / r * across, rest = height.positions % r;
    const int64_t first = (whole + 1) / 2 * r + (across + 1 - whole % 2) / 2 * rest;
    const int64_t all = std::max<int64_t>(height.positions * across, 1);
    return static_cast<double>(std::max(first, all - first)) / static_cast<double>(all);
  }

  // Whole rows where they fit, unless bands of parts of rows read much less of the input that their neighbours read.
  void choose_band() {
    constexpr double kWorthwhile = 0.9;
    const int64_t most = std::max<int64_t>(kBandBytes / kElementBytes / stride, 1);
    const int64_t most_positions = std::max<int64_t>(form.most_positions / phases(), 64);
    int64_t wide = std::clamp<int64_t>(width.positions, 1, most_positions);
    while (wide > kFewestColumns && width.extent(wide) * height.extent(1) > most) wide = (wide + 1) / 2;
    double least = std::numeric_limits<double>::infinity();
    for (;;) {
      const int64_t high = rows_of_band(wide, most, most_positions);
      const double read = static_cast<double>(height.extent(high) * width.extent(wide)) /
                          static_cast<double>(std::max<int64_t>(high * wide, 1));
      if (read < least * kWorthwhile) {
        least = read;
        rows = high;
        columns = wide;
      }
      const int64_t half = (wide / 2 + form.lanes - 1) / form.lanes * form.lanes;
      if (half < 2 * kFewestColumns) return;
      wide = half;
    }
  }

  // Of about equal bands, `wide` columns each.
  int64_t rows_of_band(int64_t wide, int64_t most, int64_t most_positions) const {
    int64_t high = 1;
    while (high < height.positions && (high + 1) * wide <= most_positions &&
           width.extent(wide) * height.extent(high + 1) <= most) {
      ++high;
    }
    const int64_t bands = (height.positions + high - 1) / high;
    return std::max<int64_t>((height.positions + bands - 1) / std::max<int64_t>(bands, 1), 1);
  }
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
