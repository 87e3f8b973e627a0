#pragma once
// Covers a block of a product with register tiles: panels of columns, and for each of them tiles of rows. A tile
// prefetches its share of the panels that come next and the partial sums of the next tile. A few rows take several
// panels at a time instead: a GEMV needs many independent chains.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/stop.h"
#include "kernels/gemm.h"
#include "kernels/isa/gemm/columns.h"
#include "kernels/isa/gemm/epilogue.h"
#include "kernels/isa/gemm/rows.h"
#include "kernels/isa/gemm/steps.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// One per run. Columns is a class like those of columns.h.
template <class T, class Columns>
class Tiler {
 public:
  Tiler(const GemmPlan& plan, const GemmOperands& operands)
      : columns_(plan, operands),
        c_row_(plan.shape.c_row),
        bias_(static_cast<const T*>(operands.bias)),
        addend_(std::is_integral_v<T> ? nullptr : static_cast<const T*>(operands.addend)),
        epilogue_(make_epilogue<T>(plan, operands)) {
    t_.epilogue = &epilogue_;
  }

  Columns& columns() { return columns_; }
  // The run was told to stop, and its results are of no use.
  bool stopped() const { return stopped_; }

  // Adds the products of `a`, the rows of `range`, with the columns of `range`.
  void add(const GemmRange& range, const TileRows<T>& a, const StepBlock<T>& steps) {
    begin(a, steps);
    in_order(range, steps);
  }

  // The same from the last columns to the first.
  void add_backward(const GemmRange& range, const TileRows<T>& a, const StepBlock<T>& steps) {
    // A whole number of the widest tiles.
    const int64_t part_columns = (columns_.vectors(range.row_end - range.row_begin) == 3 ? 12 : 8) * Lanes<T>::kCount;
    begin(a, steps);
    GemmRange part = range;
    while (part.column_end > range.column_begin && !stopped_) {
      part.column_begin = std::max(range.column_begin, (part.column_end - 1) / part_columns * part_columns);
      columns_.begin_part(std::max(range.column_begin, part.column_begin - part_columns));
      in_order(part, steps);
      part.column_end = part.column_begin;
    }
  }

 private:
  void begin(const TileRows<T>& a, const StepBlock<T>& steps) {
    a_ = a.a;
    mode_ = a.mode;
    t_.a_row = a.row;
    t_.a_col = a.col;
    t_.k = steps.count;
    t_.partial = !steps.is_last;
    t_.c_row = steps.to.stride;
    t_.sum_row = steps.from.stride;
  }

  [[gnu::noinline]] void in_order(const GemmRange& range, const StepBlock<T>& steps) {
    const int64_t rows = range.row_end - range.row_begin;
    const int vectors = columns_.vectors(rows);
    for (int64_t j = range.column_begin; j < range.column_end;) {
      const int64_t width = columns_.width(j, range.column_end - j, vectors);
      columns_.point(t_, steps.begin, j);
      columns_.follow(range, steps, j + width, vectors);
      tiles_down(range, steps, j, width);
      j += width;
      stopped_ = stop_.after(kProductNs * static_cast<double>(rows * width * steps.count));
      if (stopped_) return;
    }
  }

  void tiles_down(const GemmRange& range, const StepBlock<T>& steps, int64_t j, int64_t width) {
    constexpr int kCount = Lanes<T>::kCount;
    const int vectors = static_cast<int>((width + kCount - 1) / kCount);
    const int64_t rows = range.row_end - range.row_begin, tiles = tiles_of<T>(rows);
    t_.last_lanes = static_cast<int>(width - (vectors - 1) * kCount);
    int64_t i = range.row_begin;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t count = (rows + tile) / tiles;  // the low ones first
      const int64_t end = i + count;
      t_.a = a_ + (i - range.row_begin) * t_.a_row;
      t_.c = steps.to(i, j);
      t_.sum = steps.from(i, j);
      if (bias_ != nullptr) epilogue_.bias = bias_ + i * epilogue_.bias_row + j * epilogue_.bias_col;
      if (addend_ != nullptr) epilogue_.addend = addend_ + i * c_row_ + j;
      if (steps.from.at != nullptr) {
        if (end < range.row_end) {
          prefetch_sums(steps.from(end, j));
        } else if (j + width < range.column_end) {
          prefetch_sums(steps.from(range.row_begin, j + width));
        }
      }
      columns_.prefetch(t_, tile, tiles, vectors);
      columns_.tile(mode_, count, vectors, t_.last_lanes < kCount)(t_);
      i = end;
    }
  }

  // About those of the next tile, whose first loads would wait for them.
  void prefetch_sums(const T* sums) const {
    for (int64_t r = 0; r < kMaxRows<T>; ++r) {
      for (int64_t v = 0; v < kPanelWidth<T>; v += kLine / int64_t{sizeof(T)}) {
        __builtin_prefetch(sums + r * t_.sum_row + v);
      }
    }
  }

  Columns columns_;
  const T* a_ = nullptr;  // the first row of the range
  TileMode mode_ = TileMode::kRowA;
  int64_t c_row_;
  const T *bias_, *addend_;  // of the first element of C
  Epilogue<T> epilogue_;     // of the tile at hand
  TileArgs<T> t_;
  StopPoll stop_;
  bool stopped_ = false;
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
