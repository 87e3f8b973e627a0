#pragma once
// What a convolution with output channels in the lanes does for a shape.

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/isa/conv/direct_sums.h"
#include "kernels/isa/conv/work.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

// The work of a convolution of floats. Loads are partial sums; copies vectors of whole squares of the input that are
// transposed, or of pieces that lie as they are copied; elements what squares with a rest take, and results that are
// stored one at a time; stores the transposes of results and the pieces they are stored in; begun runs of steps in a
// tile.
class DirectWork {
  static constexpr int64_t kLanes = Lanes<float>::kCount;

 public:
  DirectWork(const ConvGeometry& g, const DirectLayout& layout)
      : g_(g),
        layout_(layout),
        rows_(std::min(layout.rows, layout.height.positions)),
        columns_(std::min(layout.columns, layout.width.positions)),
        groups_(count(layout.batch * layout.groups)) {}

  // `tile_places`: positions of a tile of so many vectors, at most.
  template <class Places>
  ConvWork work(const Places& tile_places) {
    count_copy();
    count_tiles(tile_places);
    count_results();
    return work_;
  }

 private:
  // Counts of a phase, over all positions of a group and one panel. The taps that are taken at a time are a part.
  struct Steps {
    double steps = 0, visits = 0, runs = 0;  // visits: blocks that a position's sums are fetched for
    double parts = 0, places = 0;            // places: positions of a unit that read the input for a part

    double taken() const { return steps + static_cast<double>(kTileSteps) * visits; }
  };

  void count_copy() {
    const ChannelAxis &h = layout_.height, &w = layout_.width;
    const int64_t rows = std::min(h.extent(layout_.rows), h.in), columns = std::min(w.extent(layout_.columns), w.in);
    const bool whole = w.begin == 0 && layout_.pitch == w.in;  // one piece
    const int64_t length = whole ? rows * columns : columns;
    const double pieces = groups_ * count(layout_.row_bands * layout_.column_bands * (whole ? 1 : rows));
    work_.begun += pieces;
    if (g_.shape.x_nhwc) {
      const bool joined = layout_.stride == g_.shape.in_channels;
      const int64_t vectors =
          joined ? vectors_of<float>(length * layout_.depth) : length * vectors_of<float>(layout_.depth);
      work_.copies += pieces * count(vectors);
      return;
    }
    const double squares = pieces * count(vectors_of<float>(layout_.depth) * vectors_of<float>(length));
    if (layout_.depth >= kLanes && length >= kLanes) {
      work_.copies += squares * count(kLanes);
    } else {
      work_.elements += squares * count(std::min(length, kLanes) + std::min(layout_.depth, kLanes) + kLanes / 2);
    }
  }

  template <class Places>
  void count_tiles(const Places& tile_places) {
    work_.weights =
        weight_reads<float>(groups_ * count(layout_.row_bands * layout_.column_bands), layout_.group_elements());
    const int64_t most = layout_.form.panel_vectors;
    for (int64_t phase = 0; phase < layout_.phases(); ++phase) {
      const PhaseTaps y = layout_.height.phase(phase / layout_.width.phases);
      const PhaseTaps x = layout_.width.phase(phase % layout_.width.phases);
      if (y.taps * x.taps == 0) continue;
      const Steps steps = phase_steps(y, x);
      if (layout_.vectors >= most) count_panels(steps, layout_.vectors / most, most, tile_places(most));
      if (const int64_t rest = layout_.vectors % most; rest != 0) count_panels(steps, 1, rest, tile_places(rest));
      const double units = groups_ * count(layout_.row_bands * layout_.column_bands * layout_.chunks);
      work_.elements += units * steps.parts * steps.places;
    }
  }

  void count_panels(const Steps& of, int64_t panels, int64_t vectors, int64_t most_places) {
    const double height = of.places / std::ceil(of.places / count(most_places)), times = groups_ * count(panels);
    const double wide = count(vectors), tiles = of.steps / height;  // one step of each
    work_.products += times * tiles * std::max({height * wide, height + wide, double{kUnderWay}});
    work_.loads += times * of.visits * wide;
    work_.begun += times * of.runs / height;
  }

  // As ChannelSums::add_phase takes them.
  Steps phase_steps(const PhaseTaps& y, const PhaseTaps& x) const {
    const Steps all = steps_of(y, y.taps, x, x.taps);
    const Steps rows = steps_of(y, 1, x, x.taps), single = steps_of(y, 1, x, 1);
    const Steps& parts = rows.taken() <= single.taken() ? rows : single;
    return all.taken() <= parts.taken() ? all : parts;
  }

  // If `tall` by `wide` taps are taken at a time.
  Steps steps_of(const PhaseTaps& y, int64_t tall, const PhaseTaps& x, int64_t wide) const {
    const bool joined = x.tap_step == 1 && x.spacing == 1 && layout_.stride == layout_.depth;
    const int64_t steps = tall * wide * layout_.depth, blocks = parts_of(steps, kMostSteps);
    const double met = count(meeting(layout_.height, y, tall) * meeting(layout_.width, x, wide));
    Steps all{met * count(steps), met * count(blocks), met * count(std::max(blocks, joined ? tall : tall * wide))};
    all.parts = count(parts_of(y.taps, tall) * parts_of(x.taps, wide));
    const double positions = count(layout_.height.positions * layout_.width.positions);
    all.places = std::max(count(rows_ * columns_) * met / (positions * all.parts), 1.0);
    return all;
  }

  // Positions along an axis, for each part of `taken` taps: those that a tap alone reads the input for.
  static int64_t meeting(const ChannelAxis& axis, const PhaseTaps& taps, int64_t taken) {
    if (taken > 1 || taps.taps == 1) return axis.positions * parts_of(taps.taps, taken);
    int64_t all = 0;
    for (int64_t tap = 0; tap < taps.taps; ++tap) {
      const Interval met = inside(axis.begin + taps.first + tap * taps.spacing, axis.step, axis.in, axis.positions);
      all += std::max<int64_t>(met.end - met.begin, 0);
    }
    return all;
  }

  void count_results() {
    const ChannelAxis &h = layout_.height, &w = layout_.width;
    const double results = groups_ * count(g_.out_plane);
    if (g_.shape.y_nhwc) {
      work_.stores += results * count(layout_.vectors);
    } else if (w.phases > 2) {
      work_.elements += results * count(g_.out_per_group);
    } else {
      const bool whole = columns_ == w.positions && h.phases == 1 && w.phases == 1;  // rows of a band are one line
      const int64_t length = whole ? rows_ * columns_ : columns_;
      const int64_t lines = whole ? parts_of(h.positions, rows_) : h.positions * h.phases * layout_.column_bands;
      const double pieces = groups_ * count(lines * vectors_of<float>(length) * w.phases);
      work_.stores += pieces * (count(layout_.vectors * kLanes) / 2 + count(g_.out_per_group));
    }
  }

  const ConvGeometry& g_;
  const DirectLayout& layout_;
  const int64_t rows_, columns_;  // of a unit
  const double groups_;           // of all images
  ConvWork work_;
};

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
