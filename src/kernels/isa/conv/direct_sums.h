#pragma once
// Sums of a convolution with output channels in the lanes, whatever is multiplied. A tile is some positions by a panel
// of channels; each step multiplies a row of the panel by one element of the input for each position. Elements are
// broadcast, so neither the length of rows nor strides nor shifts cost anything, and a tile may reach over the ends of
// rows.
//
//   sums[position][channel] += x[position + step] * panel[step][channel]
//
// The copy of the input has the channels of a position next to each other, so that the steps of a tap, or of a row of
// taps, are neighbours: a run. Steps are taken in blocks, whose part of a panel stays in the first-level cache while
// positions pass by; sums wait in scratch. Tiles of the last block may make results of them at once, where every
// position takes part in that block. Where a block belongs to one tap (or one row of taps), positions that it reads
// padding for are left out.

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/isa/conv/direct_layout.h"
#include "kernels/isa/unrolled.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

// Where a position's input, sums and results begin.
struct PositionOffsets {
  int32_t x, sums, y;
};

// Steps of a block; as many as leave the first-level cache room for the input beside a panel's part.
inline constexpr int64_t kMostSteps = kVectorRegisters == 32 ? 192 : 288;
inline constexpr int64_t kTileSteps = 4;  // take as long as it takes a tile to fetch sums and put them back

// Neighbouring steps: where they begin in a position's input and in a panel.
struct StepRun {
  int64_t x, row, steps;
};

// Math: Element (of the input and of a row of a panel, four bytes each), Sum, V (a vector of sums), what tiles do, and
// Results: where `put` makes results of sums, or void.
template <class Math>
struct ChannelTile {
  const typename Math::Element* x;
  const typename Math::Element* weights;  // [steps][kVectors * lanes]
  const StepRun* runs;
  const StepRun* runs_end;
  const PositionOffsets* places;
  typename Math::Sum* sums;             // of a position: kVectors * lanes
  const typename Math::Element* ahead;  // what is asked for meanwhile
  const typename Math::Element* ahead_end;
  bool begins;                            // there are no sums yet
  const typename Math::Results* results;  // where to put results instead of sums, if anywhere
  int64_t channel;                        // the panel's first
};

template <class Math, int kCount, int kVectors>
void channel_tile(const ChannelTile<Math>& t) {
  constexpr int64_t kLanes = Math::kLanes, kLineElements = 16;
  typename Math::V sums[kCount][kVectors];
  const typename Math::Element* x[kCount];
  unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
    x[i] = t.x + t.places[i].x;
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
      sums[i][v] = Math::zero();
      if (!t.begins) sums[i][v] = Math::load(t.sums + t.places[i].sums * kVectors + v * kLanes);
    });
  });
  for (const auto* line = t.ahead; line < t.ahead_end; line += kLineElements) __builtin_prefetch(line, 0, 2);
  for (const StepRun* run = t.runs; run != t.runs_end; ++run) {
    const typename Math::Element* weights = t.weights + run->row * kVectors * kLanes;
    const int64_t end = run->x + run->steps;
#pragma GCC unroll 1
    for (int64_t at = run->x; at < end; ++at, weights += kVectors * kLanes) {
      typename Math::Row row[kVectors];
      unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { row[v] = Math::row(weights + v * kLanes); });
      unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
        const auto element = Math::splat(x[i] + at);
        unrolled<kVectors>([&](auto v) __attribute__((always_inline)) { Math::add(sums[i][v], element, row[v]); });
      });
    }
  }
  if constexpr (!std::is_void_v<typename Math::Results>) {
    if (t.results != nullptr) {
      unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
        unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
          Math::put(*t.results, t.places[i].y, t.channel + v * kLanes, sums[i][v]);
        });
      });
      return;
    }
  }
  unrolled<kCount>([&](auto i) __attribute__((always_inline)) {
    unrolled<kVectors>([&](auto v) __attribute__((always_inline)) {
      Math::store(t.sums + t.places[i].sums * kVectors + v * kLanes, sums[i][v]);
    });
  });
}

template <class Math>
using ChannelTileFunction = void (*)(const ChannelTile<Math>&);

template <class Math, int kVectors, int... kCount>
constexpr std::array<ChannelTileFunction<Math>, Math::kMostPlaces> channel_tiles_of(
    std::integer_sequence<int, kCount...>) {
  return {channel_tile<Math, kCount + 1, kVectors>...};
}
template <class Math, int... kVectors>
constexpr std::array<std::array<ChannelTileFunction<Math>, Math::kMostPlaces>, Math::kPanelVectors> channel_tiles(
    std::integer_sequence<int, kVectors...>) {
  return {channel_tiles_of<Math, kVectors + 1>(std::make_integer_sequence<int, Math::places(kVectors + 1)>())...};
}
// [vectors - 1][positions - 1]
template <class Math>
inline constexpr auto kChannelTiles = channel_tiles<Math>(std::make_integer_sequence<int, Math::kPanelVectors>());

// A part of the positions of one image and group, and a part of its panels.
struct ChannelUnit {
  ChannelUnit(const DirectLayout& layout, int64_t unit) {
    const auto next = [&](int64_t count) {
      const int64_t index = unit % count;
      unit /= count;
      return index;
    };
    first_panel = next(layout.chunks) * layout.chunk;
    band = unit;
    column = next(layout.column_bands) * layout.columns;
    row = next(layout.row_bands) * layout.rows;
    group = next(layout.groups);
    image = unit;
    last_panel = std::min(first_panel + layout.chunk, layout.panels);
    rows = std::min(layout.rows, layout.height.positions - row);
    columns = std::min(layout.columns, layout.width.positions - column);
  }
  int64_t positions() const { return rows * columns; }

  int64_t first_panel, last_panel;
  int64_t band;  // units of one band read the same input
  int64_t row, column, group, image;
  int64_t rows, columns;
};

// Sums of units, [panel][phase][position][channel].
template <class Math>
class ChannelSums {
  using Element = typename Math::Element;
  using Sum = typename Math::Sum;

 public:
  // `skips`: what is outside the input adds nothing and may be left out.
  ChannelSums(const DirectLayout& layout, const Element* x, Sum* sums, PositionOffsets* places, bool skips)
      : layout_(layout), x_(x), sums_(sums), places_(places), skips_(skips) {}

  // `weights`: of the unit's group. `more`: sums that are there stay.
  void add(const ChannelUnit& unit, const Element* weights, bool more = false) {
    unit_ = &unit;
    weights_ = weights;
    more_ = more;
    put_ = false;
    for (phase_ = 0; phase_ < layout_.phases(); ++phase_) add_phase();
  }

  // The same, for one phase. Whether `results` has them; otherwise the sums are in scratch.
  bool put(const ChannelUnit& unit, const Element* weights, const typename Math::Results* results) {
    results_ = results;
    add(unit, weights);
    results_ = nullptr;
    return put_;
  }

  const Sum* panel(int64_t panel, int64_t phase) const {
    return sums_ + ((panel - unit_->first_panel) * layout_.phases() + phase) * layout_.panel_sums();
  }

 private:
  static constexpr int kMostRuns = 32;

  // Some taps at a time: the more, the fewer blocks; the fewer, the more positions read nothing but padding for them.
  void add_phase() {
    const PhaseTaps y = layout_.height.phase(phase_ / layout_.width.phases);
    const PhaseTaps x = layout_.width.phase(phase_ % layout_.width.phases);
    begins_ = !more_;
    left_ = y.taps * x.taps * layout_.depth;
    const int64_t all = steps_taken(y, y.taps, x, x.taps), rows = steps_taken(y, 1, x, x.taps);
    const int64_t single = steps_taken(y, 1, x, 1);
    const int64_t tall = all <= std::min(rows, single) ? y.taps : 1, wide = single < std::min(rows, all) ? 1 : x.taps;
    each_part(y.taps, tall,
              [&](Interval down) { each_part(x.taps, wide, [&](Interval across) { add_taps(y, down, x, across); }); });
    if (begins_) clear();
  }

  // fn of all parts of `part` taps.
  template <class Fn>
  static void each_part(int64_t taps, int64_t part, Fn fn) {
    for (int64_t at = 0; at < taps; at += part) fn(Interval{at, at + part});
  }

  // Of all positions, if parts of `tall` by `wide` taps are taken at a time.
  int64_t steps_taken(const PhaseTaps& y, int64_t tall, const PhaseTaps& x, int64_t wide) const {
    const int64_t steps = tall * wide * layout_.depth, blocks = (steps + kMostSteps - 1) / kMostSteps;
    int64_t rows = 0, columns = 0;
    each_part(y.taps, tall, [&](Interval down) { rows += size(rows_of(y, down)); });
    each_part(x.taps, wide, [&](Interval across) { columns += size(columns_of(x, across)); });
    return rows * columns * (steps + kTileSteps * blocks);
  }

  static int64_t size(Interval i) { return std::max<int64_t>(i.end - i.begin, 0); }

  void clear() {
    begins_ = false;
    for (int64_t p = unit_->first_panel; p < unit_->last_panel; ++p) {
      std::fill_n(sums_at(p), unit_->positions() * layout_.panel_vectors(p) * Math::kLanes, Sum(0));
    }
  }

  Sum* sums_at(int64_t panel) { return const_cast<Sum*>(this->panel(panel, phase_)); }

  // All steps of some taps, for the positions that any of them reads the input for.
  void add_taps(const PhaseTaps& y, Interval down, const PhaseTaps& x, Interval across) {
    find_places(y, down, x, across);
    const int64_t all = (down.end - down.begin) * (across.end - across.begin) * layout_.depth;
    left_ -= all;
    if (place_count_ == 0) return;
    if (begins_ && place_count_ < unit_->positions()) clear();
    const int64_t blocks = std::max<int64_t>((all + kMostSteps - 1) / kMostSteps, 1);
    block_steps_ = (all + blocks - 1) / blocks;
    steps_ = 0;
    run_count_ = 0;
    for (int64_t i = down.begin; i < down.end; ++i) {
      const int64_t row_tap = (y.first_tap + i * y.tap_step) * layout_.width.taps() + x.first_tap;
      const int64_t row_x = (y.first + i * y.spacing) * layout_.pitch + x.first;
      const bool joined = x.tap_step == 1 && x.spacing == 1 && layout_.stride == layout_.depth;
      const int64_t taps = joined ? across.end - across.begin : 1;
      for (int64_t j = across.begin; j < across.end; j += taps) {
        add_run((row_x + j * x.spacing) * layout_.stride, (row_tap + j * x.tap_step) * layout_.depth,
                taps * layout_.depth);
      }
    }
    flush(left_ == 0);
  }

  void add_run(int64_t x, int64_t row, int64_t steps) {
    while (steps > 0) {
      if (run_count_ == kMostRuns || steps_ == block_steps_) flush();
      const int64_t count = std::min(steps, block_steps_ - steps_);
      runs_[run_count_++] = {x, row, count};
      steps_ += count;
      x += count;
      row += count;
      steps -= count;
    }
  }

  // `ends`: with the last steps of all.
  void flush(bool ends = false) {
    if (run_count_ > 0 && !stopped_) add_block(ends && place_count_ == unit_->positions());
    run_count_ = 0;
    steps_ = 0;
  }

  void find_places(const PhaseTaps& y, Interval down, const PhaseTaps& x, Interval across) {
    const Interval rows = rows_of(y, down), columns = columns_of(x, across);
    const int64_t step = layout_.width.step * layout_.stride;
    PositionOffsets* place = places_;
    for (int64_t r = rows.begin; r < rows.end; ++r) {
      int64_t at_x = r * layout_.height.step * layout_.pitch * layout_.stride + columns.begin * step;
      int64_t at = (r * unit_->columns + columns.begin) * Math::kLanes;
      int64_t result = (r * layout_.width.out + columns.begin) * layout_.out_channels;
      for (int64_t q = columns.begin; q < columns.end; ++q) {
        *place++ = {static_cast<int32_t>(at_x), static_cast<int32_t>(at), static_cast<int32_t>(result)};
        at_x += step;
        at += Math::kLanes;
        result += layout_.out_channels;
      }
    }
    place_count_ = place - places_;
  }

  // Of the unit's positions those that some taps are multiplied at.
  Interval rows_of(const PhaseTaps& y, Interval down) const {
    const bool skips = skips_ && down.end - down.begin == 1;
    return skips ? meeting(layout_.height, y, down.begin, unit_->row, unit_->rows) : Interval{0, unit_->rows};
  }
  Interval columns_of(const PhaseTaps& x, Interval across) const {
    const bool skips = skips_ && across.end - across.begin == 1;
    return skips ? meeting(layout_.width, x, across.begin, unit_->column, unit_->columns) : Interval{0, unit_->columns};
  }

  // Of `count` positions from `first` on those that a tap reads the input for.
  static Interval meeting(const ChannelAxis& axis, const PhaseTaps& taps, int64_t tap, int64_t first, int64_t count) {
    return inside(first * axis.step + axis.begin + taps.first + tap * taps.spacing, axis.step, axis.in, count);
  }

  // `ends`: with it the sums of all positions are whole.
  void add_block(bool ends) {
    ChannelTile<Math> t;
    t.results = ends ? results_ : nullptr;
    put_ = t.results != nullptr;
    t.x = x_;
    t.runs = runs_.data();
    t.runs_end = t.runs + run_count_;
    t.begins = begins_;
    begins_ = false;
    for (int64_t panel = unit_->first_panel; panel < unit_->last_panel; ++panel) {
      const int64_t vectors = layout_.panel_vectors(panel);
      const auto& tiles = kChannelTiles<Math>[static_cast<size_t>(vectors - 1)];
      t.weights = weights_ + panel * layout_.panel_elements();
      t.sums = sums_at(panel);
      t.channel = panel * layout_.panel_channels();
      const int64_t most = Math::places(static_cast<int>(vectors));
      int64_t at = 0, left = (place_count_ + most - 1) / most;
      // The same block of the next panel, or the next block of the first one.
      const bool last = panel + 1 == unit_->last_panel;
      const Element* ahead =
          last ? weights_ + unit_->first_panel * layout_.panel_elements() : t.weights + layout_.panel_elements();
      ahead += (t.runs->row + (last ? steps_ : 0)) * vectors * Math::kLanes;
      const Element* ahead_end = std::min(ahead + steps_ * vectors * Math::kLanes, weights_ + layout_.group_elements());
      const int64_t share = (ahead_end - ahead + left - 1) / left;
      for (; left > 0; --left) {
        const int64_t count = (place_count_ - at + left - 1) / left;  // about equal ones
        t.places = places_ + at;
        t.ahead = ahead;
        t.ahead_end = ahead = std::min(ahead + share, ahead_end);
        tiles[static_cast<size_t>(count - 1)](t);
        at += count;
      }
      const int64_t products = place_count_ * steps_ * vectors * Math::kLanes;
      stopped_ = stop_.after(kProductNs * static_cast<double>(products));
      if (stopped_) return;
    }
  }

  const DirectLayout& layout_;
  const Element* x_;
  Sum* sums_;
  PositionOffsets* places_;
  const bool skips_;
  const ChannelUnit* unit_ = nullptr;
  const Element* weights_ = nullptr;
  int64_t phase_ = 0, place_count_ = 0;
  int64_t steps_ = 0, block_steps_ = 0;
  int64_t left_ = 0;  // steps of the phase
  const typename Math::Results* results_ = nullptr;
  bool more_ = false, begins_ = true, put_ = false;
  StopPoll stop_;
  bool stopped_ = false;  // it ends early, and its sums are of no use
  int run_count_ = 0;
  std::array<StepRun, kMostRuns> runs_;
};

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
