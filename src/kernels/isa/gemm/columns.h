#pragma once
// The columns of a B of T as tiles read them: packed, as they lie, or copied to panels by the run. A Tiler (tiler.h)
// asks such a class
//
//   vectors(rows)             how many vectors of columns the tiles of so many rows take
//   width(j, left, vectors)   how many of the `left` columns from column j on the next tile takes
//   point(t, step, j)         points a tile at these columns
//   tile(mode, rows, ...)     which tile then reads them
//
// and tells it what follows, for prefetching.

#include <algorithm>
#include <cstdint>

#include "base/caches.h"
#include "base/stop.h"
#include "kernels/gemm.h"
#include "kernels/isa/gemm/panels.h"
#include "kernels/isa/gemm/steps.h"
#include "kernels/isa/gemm/tile_choice.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Columns that are not prefetched.
struct NearColumns {
  static void begin_part(int64_t) {}
  template <class T>
  static void follow(const GemmRange&, const StepBlock<T>&, int64_t, int) {}
  template <class T>
  static void prefetch(TileArgs<T>&, int64_t, int64_t, int) {}
};

// Columns of the next tile: all its vectors, or what is left of a panel. `in_panel`: columns to the end of the panel.
template <class T>
int64_t tile_width(int64_t left, int64_t in_panel, int vectors) {
  constexpr int64_t kWidth = kPanelWidth<T>, kCount = Lanes<T>::kCount;
  if (vectors == 3) {
    if (in_panel % kCount == 0 && left >= 3 * kCount) return 3 * kCount;
  } else if (in_panel == kWidth) {
    for (int64_t wide = vectors * kCount; wide > kWidth; wide /= 2) {
      if (wide <= left) return wide;
    }
  }
  return std::min(left, in_panel);
}

// Rows of B as they lie.
template <class T>
class GivenColumns : public NearColumns {
 public:
  GivenColumns(const GemmPlan& plan, const GemmOperands& operands)
      : b_(static_cast<const T*>(operands.b)), row_(plan.shape.b_row) {}

  static int vectors(int64_t rows) { return wide_vectors<T>(balanced_rows<T>(rows)); }
  static int64_t width(int64_t, int64_t left, int vectors) { return tile_width<T>(left, kPanelWidth<T>, vectors); }
  void point(TileArgs<T>& t, int64_t step, int64_t j) const {
    t.b = b_ + step * row_ + j;
    t.b_step = row_;
    t.b_panel = kPanelWidth<T>;
  }
  static TileFunction<T> tile(TileMode mode, int64_t rows, int vectors, bool tail) {
    return own_tile<T>({mode, rows, vectors, tail, false, false});
  }

 private:
  const T* b_;
  int64_t row_;
};

// A group of B's columns in panels in scratch.
template <class T>
class CopiedColumns : public NearColumns {
 public:
  CopiedColumns(const GemmPlan& plan, const GemmOperands& operands)
      : shape_(plan.shape), b_(static_cast<const T*>(operands.b)), to_(GemmScratch<T>(plan, operands).panels) {}

  // Copies the columns of `group`, one panel behind the other.
  void copy(const GemmRange& group, const StepBlock<T>& steps) {
    first_ = group.column_begin;
    rows_ = steps.count;
    StopPoll stop;
    pack_columns(b_ + steps.begin * shape_.b_row + first_ * shape_.b_col, shape_, steps.count,
                 group.column_end - first_, panels(), to_, stop);
  }

  static int vectors(int64_t rows) { return wide_vectors<T>(balanced_rows<T>(rows)); }
  int64_t width(int64_t j, int64_t left, int vectors) const {
    return tile_width<T>(left, kPanelWidth<T> - (j - first_) % kPanelWidth<T>, vectors);
  }
  void point(TileArgs<T>& t, int64_t, int64_t j) {
    t.b = to_ + panels().place(0, j - first_);
    t.b_step = kPanelWidth<T>;
    t.b_panel = panels().panel();
    second_ = (j - first_) % kPanelWidth<T> != 0;
  }
  TileFunction<T> tile(TileMode mode, int64_t rows, int vectors, bool tail) const {
    return own_tile<T>({mode, rows, vectors, tail, second_, false});
  }

 private:
  GemmPanels panels() const { return {kPanelWidth<T>, rows_}; }

  const GemmShape& shape_;
  const T* b_;
  T* to_;
  int64_t first_ = 0;  // the column that begins the group
  int64_t rows_ = 0;
  bool second_ = false;
};

// Panels that pack_b wrote. Where B does not fit the second-level cache, tiles prefetch the panels that follow theirs.
template <class T>
class PackedColumns {
 public:
  PackedColumns(const GemmPlan& plan, const GemmOperands& operands)
      : b_(static_cast<const T*>(operands.b)),
        rows_(plan.shape.k),
        beyond_l2_(static_cast<size_t>(plan.shape.n * plan.shape.k) * sizeof(T) > caches().second),
        next_(b_) {}

  int vectors(int64_t rows) const {
    const int vectors = wide_vectors<T>(balanced_rows<T>(rows));
    // One tile that takes half a panel at a time would read from memory by fits and starts.
    return beyond_l2_ && vectors == 3 && rows <= 4 ? 2 : vectors;
  }
  static int64_t width(int64_t j, int64_t left, int vectors) {
    return tile_width<T>(left, kPanelWidth<T> - j % kPanelWidth<T>, vectors);
  }
  void point(TileArgs<T>& t, int64_t step, int64_t j) {
    t.b = b_ + panels().place(step, j);
    t.b_step = kPanelWidth<T>;
    t.b_panel = panels().panel();
    second_ = j % kPanelWidth<T> != 0;
  }
  TileFunction<T> tile(TileMode mode, int64_t rows, int vectors, bool tail) const {
    return own_tile<T>({mode, rows, vectors, tail, second_, beyond_l2_});
  }

  // A part of a range begins behind which the columns from `next` on are read.
  void begin_part(int64_t next) { next_part_ = next; }
  // The tiles of `vectors` vectors that come now are followed by those from column j on. Three vectors begin in a panel
  // that has been read, or take two new ones.
  void follow(const GemmRange& range, const StepBlock<T>& steps, int64_t j, int vectors) {
    if (!beyond_l2_) return;
    const int64_t next = (j + kPanelWidth<T> - 1) / kPanelWidth<T> * kPanelWidth<T>;
    next_panels_ = vectors == 3 && next == j ? 2 : 1;
    if (next < range.column_end) {
      next_ = b_ + panels().place(steps.begin, next);
    } else if (!steps.is_last) {
      next_ = b_ + panels().place(steps.begin + steps.count, range.column_begin);
    } else {
      next_ = b_ + panels().place(0, next_part_);
    }
  }
  // What tile `tile` of the `tiles` that share panels prefetches: its part of the next ones. A single tile goes through
  // panels that lie one behind the other.
  void prefetch(TileArgs<T>& t, int64_t tile, int64_t tiles, int vectors) const {
    constexpr int64_t kStepBytes = 2 * kVectorBytes;
    if (!beyond_l2_) return;
    if (vectors > 3) {
      t.next = reinterpret_cast<const char*>(next_);
      return;
    }
    if (tiles == 1) {
      t.next = static_cast<const char*>(t.b) + kSingleTilePrefetchBytes;
      t.next_step = kStepBytes;
      return;
    }
    const int64_t part = tile * next_panels_, panel = part / tiles;
    t.next_step = (kStepBytes * next_panels_ + tiles - 1) / tiles;
    t.next =
        reinterpret_cast<const char*>(next_ + panel * panels().panel()) + t.k * kStepBytes * (part % tiles) / tiles;
  }

 private:
  // Their width is a constant, so that finding an element takes no division.
  GemmPanels panels() const { return {kPanelWidth<T>, rows_}; }

  const T* b_;
  int64_t rows_;  // of B
  bool beyond_l2_, second_ = false;
  const T* next_;  // the panels that follow
  int64_t next_panels_ = 1;
  int64_t next_part_ = 0;  // the column that follows the range
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
