#pragma once
// The rows of A as tiles read them.

#include <algorithm>
#include <cstdint>

#include "base/caches.h"
#include "kernels/gemm.h"
#include "kernels/isa/gemm/steps.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// A range of this many columns uses rows of A often enough for a copy of them to pay.
inline constexpr int64_t kCopyColumns = 256;
// Bytes from step to step of a transposed A from which on its rows are copied as well.
inline constexpr int64_t kFarSteps = 1024;
// Lines whose addresses are a multiple of it apart share a place in the first-level cache.
inline constexpr int64_t kCacheWay = 4096;
// Copied rows lie so many elements further apart than they are long. Thus the lines of a tile's rows never have
// addresses a power of two apart, and do not push each other out of a cache.
template <class T>
inline constexpr int64_t kRowGap = 64 / int64_t{sizeof(T)};

// Whether a tile can read `rows` rows as they lie: steps are neighbours, or rows are.
inline bool reads_in_place(const GemmShape& shape, int64_t rows) {
  return shape.a_col == 1 || shape.a_row == 1 || rows <= 1;
}

// `a` is the first row of a range, at the first step of a block.
template <class T>
struct TileRows {
  const T* a;
  int64_t row, col;
  TileMode mode;
};

template <class T>
TileRows<T> rows_in_place(const GemmShape& shape, const GemmOperands& operands, int64_t row, int64_t step) {
  return {static_cast<const T*>(operands.a) + row * shape.a_row + step * shape.a_col, shape.a_row, shape.a_col,
          shape.a_col == 1 ? TileMode::kRowA : TileMode::kColumnA};
}

// The rows of a run's range: as they lie, or copied in the order that tiles need. Many rows go through in blocks, which
// stay in the second-level cache.
template <class T>
class RowBlocks {
 public:
  RowBlocks(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range)
      : shape_(plan.shape), operands_(operands), rows_(range.row_end - range.row_begin) {
    const GemmScratch<T> scratch(plan, operands);
    if (!reads_in_place(shape_, rows_)) {
      rows_ = kMaxRows<T>;
      copies_ = Copies::kTile;
      to_ = scratch.tile_rows;
    } else if (plan.blocks_rows && !has_bias_in_place(operands) && rows_ > plan.block_rows / 2 &&
               range.column_end - range.column_begin >= kCopyColumns) {
      rows_ = plan.block_rows;
      copies_ = lie_well(plan.block_steps) ? Copies::kNone : Copies::kRows;
      to_ = scratch.rows;
    }
  }

  // fn(part, rows) for one block of the range's rows after the other.
  template <class Fn>
  void each(const GemmRange& range, const StepBlock<T>& steps, const Fn& fn) const {
    GemmRange part = range;
    for (; part.row_begin < range.row_end; part.row_begin = part.row_end) {
      part.row_end = std::min(part.row_begin + rows_, range.row_end);
      fn(part, rows_of(part, steps));
    }
  }

 private:
  enum class Copies : uint8_t { kNone, kRows, kTile };  // of A: none, a block of rows, the rows of one tile

  // Not inlined: each walk would get its own copy of the code that copies.
  [[gnu::noinline]] TileRows<T> rows_of(const GemmRange& part, const StepBlock<T>& steps) const {
    const TileRows<T> given = rows_in_place<T>(shape_, operands_, part.row_begin, steps.begin);
    const int64_t count = part.row_end - part.row_begin;
    switch (copies_) {
      case Copies::kNone:
        return given;
      case Copies::kRows:
        return copy_rows(given, count, steps.count);
      case Copies::kTile:
        pack_panel(given.a, shape_.a_col, shape_.a_row, steps.count, count, kMaxRows<T>, to_);
        return {to_, 1, kMaxRows<T>, TileMode::kColumnA};
    }
    __builtin_unreachable();
  }

  // Rows that lie apart cost a page each, and cache lines that few steps share; so do the steps of a transposed A.
  TileRows<T> copy_rows(const TileRows<T>& given, int64_t count, int64_t steps) const {
    const int64_t stride = steps + kRowGap<T>;
    if (shape_.a_col == 1) {
      for (int64_t i = 0; i < count; ++i) std::copy_n(given.a + i * shape_.a_row, steps, to_ + i * stride);
    } else {
      transpose_panel(given.a, shape_.a_col, count, steps, stride, to_);
    }
    return {to_, stride, 1, TileMode::kRowA};
  }

  // Whether the rows of a block lie behind each other, and those of a tile in different places of a cache.
  bool lie_well(int64_t block_steps) const {
    return shape_.k <= block_steps && shape_.a_col == 1 && shape_.a_row == shape_.k &&
           shape_.a_row * int64_t{sizeof(T)} % kCacheWay != 0;
  }

  const GemmShape& shape_;
  const GemmOperands& operands_;
  int64_t rows_;  // of a block
  Copies copies_ = Copies::kNone;
  T* to_ = nullptr;
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
