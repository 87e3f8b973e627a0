#pragma once
// Matrix products of 32- and 64-bit elements: drives register tiles over rows, panels of columns and blocks of k.
//
// Loops, outermost first: blocks of k (the panel of one block stays in a near cache), groups of panels where B has to
// be copied into panels, blocks of rows (they stay in the second-level cache), panels of B, tiles of rows. A tile asks
// for its share of the panel that comes next, and for the partial sums of the next tile. Few rows take several panels
// at a time instead (a GEMV needs many independent chains), and all of k in one go, so that B is read once, from its
// first columns on or from its last. Partial sums travel from block to block through C, which leaves each element's
// chain as it is.
//
// Each type of elements is instantiated in a source of its own, since the tiles of one take a compiler tens of seconds.

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "base/caches.h"
#include "kernels/isa/gemm_dot.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/gemm_tile.h"
#include "kernels/isa/gemm_transposed.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

inline constexpr int64_t kPackRows = 24;  // from here on a panel of unpacked B is used often enough to be copied first
inline constexpr int64_t kCopyColumns =
    256;  // from here on rows of A are used often enough to be copied next to each other
inline constexpr int64_t kGroupPanels =
    4;  // of B, that few rows have copied at a time: as many as the widest tile reads
inline constexpr int64_t kGroupBytes = 16384;
inline constexpr int64_t kFarSteps =
    1024;  // bytes from step to step of a transposed A, whose rows are then copied as well
inline constexpr bool kManyRegisters = kVectorRegisters == 32;
// 12 sums and four operands of a step take 16 registers. Products of integers need one more.
template <class T>
inline constexpr bool kThreeVectors = kVectorBytes == 32 && !std::is_integral_v<T>;
// Lines whose addresses are a multiple of it apart share a place in a cache of the first level.
inline constexpr int64_t kCacheWay = 4096;
// Copied rows lie so many elements further apart than they are long, so that those of a tile never share the lines of a
// cache that all have addresses a power of two apart.
template <class T>
inline constexpr int64_t kRowGap = 64 / int64_t{sizeof(T)};

// Steps of a panel that stay near: a tall tile takes so few bytes of B for its multiply-adds that they may come from
// the second-level cache; a low one needs them in the first.
inline int64_t near_steps() {
  const size_t bytes = kManyRegisters ? std::max(caches().first, caches().second / 8) : caches().first;
  return std::max<int64_t>(static_cast<int64_t>(bytes) / (2 * kVectorBytes), 64);
}

// Rows whose block of `steps` takes three eighths of the second-level cache: panels and sums pass through it as well.
template <class T>
int64_t near_rows(int64_t steps) {
  const auto bytes = static_cast<int64_t>(caches().second / 8 * 3);
  const int64_t rows = bytes / (std::max<int64_t>(steps, 1) * int64_t{sizeof(T)});
  return std::max<int64_t>(rows / kMaxRows<T>, 4) * kMaxRows<T>;
}

// Vectors per tile for tiles of `rows` rows where several panels are at hand: enough chains to hide the latency of an
// addition.
template <class T>
constexpr int wide_vectors(int64_t rows) {
  if (rows == 1) return 8;
  if (rows == 2) return kManyRegisters ? 8 : 4;
  if (rows == 3) return kManyRegisters || kThreeVectors<T> ? 4 : 2;
  if (rows == 4) return kManyRegisters ? 4 : kThreeVectors<T> ? 3 : 2;
  return 2;
}

// `second`: the first of the three vectors is the second one of a panel.
template <class T, TileMode kMode, class B, int kAhead>
TileFunction<T> tile_of_three(int64_t rows, bool second) {
  constexpr TileFunction<T> kTiles[2][2] = {
      {tile<T, 3, 3, kMode, false, B, kAhead>, tile<T, 3, 3, kMode, false, B, kAhead, 1>},
      {tile<T, 4, 3, kMode, false, B, kAhead>, tile<T, 4, 3, kMode, false, B, kAhead, 1>}};
  return kTiles[rows - 3][second];
}

// `second`: as above, of three vectors.
template <class T, TileMode kMode, class B = T, int kAhead = 0>
TileFunction<T> wide_tile(int64_t rows, int vectors, bool second) {
  constexpr bool kLong = kManyRegisters;
  if (rows == 1) return vectors == 8 ? tile<T, 1, 8, kMode, false, B, kAhead> : tile<T, 1, 4, kMode, false, B, kAhead>;
  if (rows == 2) {
    if constexpr (kLong) {
      if (vectors == 8) return tile<T, 2, 8, kMode, false, B, kAhead>;
    }
    return tile<T, 2, 4, kMode, false, B, kAhead>;
  }
  if constexpr (kThreeVectors<T>) {
    if (vectors == 3) return tile_of_three<T, kMode, B, kAhead>(rows, second);
  }
  if constexpr (kLong || kThreeVectors<T>) {
    if (rows == 3) return tile<T, 3, 4, kMode, false, B, kAhead>;
  }
  if constexpr (kLong) {
    if (rows == 4) return tile<T, 4, 4, kMode, false, B, kAhead>;
  }
  return nullptr;
}

template <class T>
TileFunction<T> narrow_tile(TileMode mode, int64_t rows, int vectors, bool tail) {
  const auto pick = [&](auto& one, auto& one_tail, auto& two, auto& two_tail) {
    return (vectors == 1 ? (tail ? one_tail : one) : (tail ? two_tail : two))[rows - 1];
  };
  if (mode == TileMode::kRowA) {
    return pick(kTileTable<T, 1, TileMode::kRowA, false>, kTileTable<T, 1, TileMode::kRowA, true>,
                kTileTable<T, 2, TileMode::kRowA, false>, kTileTable<T, 2, TileMode::kRowA, true>);
  }
  return pick(kTileTable<T, 1, TileMode::kColumnA, false>, kTileTable<T, 1, TileMode::kColumnA, true>,
              kTileTable<T, 2, TileMode::kColumnA, false>, kTileTable<T, 2, TileMode::kColumnA, true>);
}

// Few rows times a matrix that does not fit the second-level cache: so many bytes ahead of a tile it is asked for.
// Elements of Half take twice the instructions for a byte, too many to have enough answers under way at a time, and
// asking costs them nothing where they are near.
inline constexpr int kFarAhead = 2048, kSingleAhead = 8192, kHalfAhead = 2048;

// Tiles on panels of Half and of ScaledByte, for rows that lie in order and are too few to make up for widening a panel
// first: a tile widens what it reads, which takes one instruction where there is one for it.
inline constexpr int64_t kHalfRows = (kVectorBytes > 16 ? 3 : 1) * kMaxRows<float>;

template <class B>
TileFunction<float> widening_tile(int64_t rows, int vectors) {
  constexpr auto kRowA = TileMode::kRowA;
  if (vectors > 2) return wide_tile<float, kRowA, B, kHalfAhead>(rows, vectors, false);
  return (vectors == 1 ? kTileTable<float, 1, kRowA, true, B> : kTileTable<float, 2, kRowA, true, B>)[rows - 1];
}

// Such panels are as wide as the widest tile, so that a row times a matrix is one stream: such matrices come from
// far away. The last one is as wide as what is left, in whole panels of float.
inline constexpr int64_t kHalfWidth = 8 * Lanes<float>::kCount;

inline int64_t half_panel_width(const GemmShape& shape, int64_t first) {
  constexpr int64_t kWidth = kPanelWidth<float>;
  return std::min(kHalfWidth, (shape.n - first + kWidth - 1) / kWidth * kWidth);
}

struct TileChoice {
  TileMode mode;
  int64_t rows;
  int vectors;
  bool tail;
  bool second;  // of three vectors: the first is the second one of a panel
  bool far;     // B comes from beyond the second-level cache
};

// The tile on panels of T. Sources that need it for floats beside panels of their own refer to that of gemm_f32.cc.
template <class T>
TileFunction<T> own_tile(const TileChoice& c) {
  constexpr auto kRowA = TileMode::kRowA;
  if constexpr (std::is_same_v<T, float>) {
    if (c.far && c.mode == kRowA && !c.tail && c.vectors == 2) {
      return kTileTable<T, 2, kRowA, false, T, kNextPanel>[c.rows - 1];
    }
  }
  if (c.vectors <= 2) return narrow_tile<T>(c.mode, c.rows, c.vectors, c.tail);
  if constexpr (std::is_same_v<T, float>) {
    if constexpr (kThreeVectors<T>) {
      if (c.far && c.mode == kRowA && c.vectors == 3) return tile_of_three<T, kRowA, T, kNextPanel>(c.rows, c.second);
    }
    if (c.far && c.mode == kRowA) return wide_tile<T, kRowA, T, kFarAhead>(c.rows, c.vectors, c.second);
  }
  return c.mode == kRowA ? wide_tile<T, kRowA>(c.rows, c.vectors, c.second)
                         : wide_tile<T, TileMode::kColumnA>(c.rows, c.vectors, c.second);
}

template <class T>
constexpr GemmPanels panels_of(const GemmShape& shape) {
  return {kPanelWidth<T>, shape.k};
}

// `columns` columns of B, from `b` on, to panels. Where rows lie in order, a few of them at a time go to all panels, so
// that they are read as they lie: pieces as wide as a panel would be one from each of many pages.
template <class T>
void pack_columns(const T* b, const GemmShape& shape, int64_t steps, int64_t columns, const GemmPanels& panels, T* to,
                  StopPoll& stop) {
  constexpr int64_t kWidth = kPanelWidth<T>, kRowsAtATime = 8, kMostSteps = 4096;
  const int64_t block = shape.b_col == 1 ? kRowsAtATime : std::clamp<int64_t>(steps, 1, kMostSteps);
  for (int64_t p = 0; p < steps; p += block) {
    const int64_t deep = std::min(block, steps - p);
    for (int64_t j = 0; j < columns; j += kWidth) {
      if (stop.after(kPackedNs * static_cast<double>(deep * kWidth))) return;
      pack_panel(b + p * shape.b_row + j * shape.b_col, shape.b_row, shape.b_col, deep, std::min(kWidth, columns - j),
                 kWidth, to + panels.place(p, j));
    }
  }
}

// Columns of panels of ScaledByte. Their scales are in front of the panels.
inline int64_t padded_columns(const GemmShape& shape) {
  constexpr int64_t kWidth = kPanelWidth<float>;
  return (shape.n + kWidth - 1) / kWidth * kWidth;
}

template <class B>
const B* panels_in(const void* packed, const GemmShape& shape) {
  if constexpr (std::is_same_v<B, ScaledByte>) {
    return reinterpret_cast<const B*>(static_cast<const float*>(packed) + padded_columns(shape));
  }
  return static_cast<const B*>(packed);
}

// One run of a plan over one range. Elements of B are Half or ScaledByte where the plan's panels are.
template <class T, class B = T>
class Gemm {
 public:
  Gemm(const GemmPlan& plan, const GemmOperands& operands)
      : shape_(plan.shape),
        a_(static_cast<const T*>(operands.a)),
        b_(panels_in<B>(operands.b, plan.shape)),
        scales_(static_cast<const float*>(operands.b)),
        c_(static_cast<T*>(operands.c)),
        panel_scratch_(static_cast<T*>(operands.scratch)),
        rows_scratch_(panel_scratch_ + plan.block_panels * plan.block_steps * kPanelWidth<T>),
        sum_scratch_(rows_scratch_ + plan.block_steps * kMaxRows<T>),
        copy_scratch_(sum_scratch_ + kMaxRows<T> * kPanelWidth<T>),
        block_steps_(plan.block_steps),
        block_rows_(plan.block_rows),
        block_panels_(plan.block_panels),
        epilogue_(make_epilogue<T>(plan, operands)),
        blocks_rows_(plan.blocks_rows),
        backward_(operands.backward && plan.shape.b_packed) {}

  void run(GemmRange range) {
    const int64_t rows = range.row_end - range.row_begin;
    if (rows <= 0 || range.column_end <= range.column_begin) return;
    strided_a_ = shape_.a_col != 1 && shape_.a_row != 1 && rows > 1;
    copy_panels_ =
        kHalf ? rows > kHalfRows || shape_.a_col != 1 : !shape_.b_packed && (shape_.b_col != 1 || rows >= kPackRows);
    const bool blocked = copy_panels_ || strided_a_ || rows > kMaxRows<T>;
    backward_ &= !blocked;
    const bool in_place = epilogue_.bias == c_;
    blocks_rows_ &= blocked && !in_place && !strided_a_ && rows > block_rows_ / 2 &&
                    range.column_end - range.column_begin >= kCopyColumns;
    copies_rows_ = blocks_rows_ && !lie_well();
#if defined(__AVX2__)
    if constexpr (std::is_same_v<B, float>) {
      if (copy_panels_ && shape_.b_row == 1 && turns(rows)) {
        range.column_begin = run_turned(range);
        if (range.column_begin == range.column_end) return;
      }
    }
#endif
    if (groups()) set_groups(rows < kPackRows && !in_place);
    // A tile of so many steps could not be stopped in time.
    if (!blocked) block_steps_ = kLongTile;
    if (shape_.k <= block_steps_ && !blocks_rows_ && !groups()) {
      block(range, 0, shape_.k, {c_, shape_.c_row}, {});
    } else if (!in_place || shape_.k <= block_steps_) {
      run_blocks(range, {c_, shape_.c_row});
    } else {
      run_in_place(range);
    }
  }

 private:
  static constexpr int64_t kLongTile = 1 << 16;
  static constexpr bool kHalf = !std::is_same_v<B, T>, kBytes = std::is_same_v<B, ScaledByte>;

  // A place for elements of C, from element (row, column) of C on.
  struct Place {
    T* at = nullptr;
    int64_t stride = 0;
    int64_t row = 0, column = 0;
    T* operator()(int64_t i, int64_t j) const {
      return at == nullptr ? nullptr : at + (i - row) * stride + (j - column);
    }
  };

  // Whether panels of B are copied, some of them at a time.
  bool groups() const { return copy_panels_ && !kHalf; }

  // A few rows have so few panels and steps copied at a time that they stay in the first-level cache.
  void set_groups(bool few_rows) {
    const int64_t panel = kPanelWidth<T> * int64_t{sizeof(T)}, room = block_panels_ * block_steps_;
    few_rows_ = few_rows;
    if (few_rows_) {
      block_steps_ = std::min(block_steps_, kGroupBytes / (kGroupPanels * panel));
      block_panels_ = std::min(kGroupPanels, room / block_steps_);
    }
    group_columns_ = block_panels_ * kPanelWidth<T>;
  }

  // All of k in blocks; `sums` is where partial sums wait. Few rows go through all of k for one group of panels after
  // the other, so that B is read along its rows if it is transposed.
  void run_blocks(const GemmRange& range, const Place& sums) {
    if (!few_rows_) return run_steps(range, sums);
    by_groups(range, [&](const GemmRange& group) { run_steps(group, sums); });
  }

  // fn(part) for the columns of one group of panels after the other.
  template <class Fn>
  void by_groups(const GemmRange& range, Fn fn) const {
    GemmRange part = range;
    for (; part.column_begin < range.column_end; part.column_begin = part.column_end) {
      if (groups()) part.column_end = std::min(part.column_begin + group_columns_, range.column_end);
      fn(part);
    }
  }

  void run_steps(const GemmRange& range, const Place& sums) {
    int64_t p = 0;
    do {  // a sum of nothing is a result, too
      const int64_t steps = std::min(block_steps_, shape_.k - p);
      const bool last = p + steps == shape_.k;
      by_groups(range, [&](const GemmRange& group) {
        if (stopped_) return;
        if constexpr (!kHalf) {
          if (groups()) copy_group(group, p, steps);
        }
        GemmRange rows = group;
        for (; rows.row_begin < range.row_end; rows.row_begin = rows.row_end) {
          if (blocks_rows_) rows.row_end = std::min(rows.row_begin + block_rows_, range.row_end);
          block(rows, p, steps, last ? Place{c_, shape_.c_row} : sums, p == 0 ? Place{} : sums);
        }
      });
      p += steps;
    } while (p < shape_.k && !stopped_);
  }

  // Panels of the columns of `group`, steps from p on, one behind the other.
  void copy_group(const GemmRange& group, int64_t p, int64_t steps) {
    group_begin_ = group.column_begin;
    const T* b = b_ + p * shape_.b_row + group.column_begin * shape_.b_col;
    StopPoll stop;
    pack_columns(b, shape_, steps, group.column_end - group.column_begin, GemmPanels{kPanelWidth<T>, steps},
                 panel_scratch_, stop);
  }

#if defined(__AVX2__)
  // Several rows share a copy of short columns of B, which costs them less.
  bool turns(int64_t rows) const {
    return rows == 1 ? shape_.k >= kTurnedSteps : rows <= kTurnedRows && shape_.k >= kTurnedLong;
  }

  // A few rows of A by columns of B: a group of columns has its sums over whole fours of steps made first, and the tile
  // adds the steps that are left and does what follows a product. Returns the first column that is not done.
  int64_t run_turned(const GemmRange& range) {
    constexpr int64_t kRoom = kMaxRows<T> * kPanelWidth<T>;
    const int64_t steps = shape_.k - shape_.k % kTurnedSteps, rows = range.row_end - range.row_begin;
    const int64_t stride = kRoom / rows / kTurnedColumns * kTurnedColumns;
    const int64_t lag = shape_.b_col * int64_t{sizeof(T)} % kCacheWay == 0 ? std::min(kTurnedLag, steps) : 0;
    GemmRange part = range;
    for (;; part.column_begin = part.column_end) {
      const int64_t columns =
          std::min(stride, (range.column_end - part.column_begin) / kTurnedColumns * kTurnedColumns);
      if (columns == 0) return part.column_begin;
      part.column_end = part.column_begin + columns;
      const TurnedOperands operands{a_ + part.row_begin * shape_.a_row,
                                    shape_.a_row,
                                    shape_.a_col,
                                    b_ + part.column_begin * shape_.b_col,
                                    shape_.b_col,
                                    sum_scratch_,
                                    stride};
      for (int64_t j = 0; j < columns; j += kTurnedColumns) turned_sums(rows, operands, j, steps, lag);
      copy_group(part, steps, shape_.k - steps);
      block(part, steps, shape_.k - steps, {c_, shape_.c_row},
            {sum_scratch_, stride, part.row_begin, part.column_begin});
    }
  }
#endif

  // The bias lies where partial sums would: they wait in scratch, a tile at a time.
  void run_in_place(const GemmRange& range) {
    for (int64_t i = range.row_begin; i < range.row_end; i += kMaxRows<T>) {
      for (int64_t j = range.column_begin; j < range.column_end; j += kPanelWidth<T>) {
        run_blocks(
            {i, std::min<int64_t>(i + kMaxRows<T>, range.row_end), j, std::min(j + kPanelWidth<T>, range.column_end)},
            {sum_scratch_, kPanelWidth<T>, i, j});
      }
    }
  }

  // Steps [p, p + steps) for the whole range, adding to `from`, stored to `to`.
  void block(const GemmRange& range, int64_t p, int64_t steps, const Place& to, const Place& from) {
    t_.k = steps;
    t_.partial = p + steps < shape_.k;
    t_.c_row = to.stride;
    t_.sum_row = from.stride;
    t_.epilogue = &tile_epilogue_;
    if (!strided_a_) {
      mode_ = copies_rows_ || shape_.a_col == 1 ? TileMode::kRowA : TileMode::kColumnA;
      t_.a_row = shape_.a_row;
      t_.a_col = shape_.a_col;
      const T* a = a_ + range.row_begin * shape_.a_row + p * shape_.a_col;
      columns(range, copies_rows_ ? copy_rows(a, range.row_end - range.row_begin, steps) : a, p, to, from);
      return;
    }
    mode_ = TileMode::kColumnA;
    t_.a_row = 1;
    t_.a_col = kMaxRows<T>;
    for (int64_t i = range.row_begin; i < range.row_end; i += kMaxRows<T>) {
      const int64_t count = std::min<int64_t>(kMaxRows<T>, range.row_end - i);
      pack_panel(a_ + i * shape_.a_row + p * shape_.a_col, shape_.a_col, shape_.a_row, steps, count, kMaxRows<T>,
                 rows_scratch_);
      columns({i, i + count, range.column_begin, range.column_end}, rows_scratch_, p, to, from);
    }
  }

  // Whether the rows of a block lie behind each other, and those of a tile in different places of a cache.
  bool lie_well() const {
    return shape_.k <= block_steps_ && shape_.a_col == 1 && shape_.a_row == shape_.k &&
           shape_.a_row * int64_t{sizeof(T)} % kCacheWay != 0;
  }

  // Rows far apart cost a page each, and lines of a cache that only few of them can share; so do the steps of a
  // transposed A.
  const T* copy_rows(const T* a, int64_t rows, int64_t steps) {
    t_.a_row = steps + kRowGap<T>;
    if (shape_.a_col == 1) {
      for (int64_t i = 0; i < rows; ++i) std::copy_n(a + i * shape_.a_row, steps, copy_scratch_ + i * t_.a_row);
    } else {
      transpose_panel(a, shape_.a_col, rows, steps, t_.a_row, copy_scratch_);
    }
    return copy_scratch_;
  }

  void columns(const GemmRange& range, const T* a, int64_t p, const Place& to, const Place& from) {
    if (!backward_) return columns_in_order(range, a, p, to, from);
    // A whole number of the widest tiles.
    const int64_t kStep = (vectors_for(range.row_end - range.row_begin) == 3 ? 12 : 8) * Lanes<T>::kCount;
    GemmRange part = range;
    while (part.column_end > range.column_begin) {
      part.column_begin = std::max(range.column_begin, (part.column_end - 1) / kStep * kStep);
      next_part_ = std::max(range.column_begin, part.column_begin - kStep);
      columns_in_order(part, a, p, to, from);
      part.column_end = part.column_begin;
    }
  }

  int vectors_for(int64_t rows) const {
    const int vectors = wide_vectors<T>(balanced_rows<T>(rows));
    // One tile that takes half a panel at a time would read from afar by fits and starts.
    return far_ && vectors == 3 && rows <= 4 ? 2 : vectors;
  }

  void columns_in_order(const GemmRange& range, const T* a, int64_t p, const Place& to, const Place& from) {
    constexpr int64_t kWidth = kPanelWidth<T>;
    constexpr int64_t kCount = Lanes<T>::kCount;
    wide_ = vectors_for(range.row_end - range.row_begin);
    const int vectors = wide_;
    for (int64_t j = range.column_begin; j < range.column_end;) {
      const int64_t left = range.column_end - j;
      const int64_t in_panel = shape_.b_packed || groups() ? kWidth - (j - group_begin_) % kWidth : kWidth;
      int64_t width = std::min(left, in_panel);
      if (vectors == 3) {
        if (!kHalf && in_panel % kCount == 0 && left >= 3 * kCount) width = 3 * kCount;
      } else if (!widens() && in_panel == kWidth) {
        const int64_t most = kHalf ? std::min(left, kHalfWidth - j % kHalfWidth) : left;
        for (int64_t wide = vectors * kCount; wide > kWidth; wide /= 2) {
          if (wide <= most) {
            width = wide;
            break;
          }
        }
      }
      set_panel(p, j);
      if (far_) find_next_panels(range, p, j + width);
      tiles_down(range, a, j, width, to, from);
      j += width;
      if (counts(range, width)) return;
    }
  }

  // Counts the work of a tile of so many columns. Whether to end early.
  bool counts(const GemmRange& range, int64_t width) {
    const int64_t products = (range.row_end - range.row_begin) * width * t_.k;
    stopped_ = stop_.after(kProductNs * static_cast<double>(products));
    return stopped_;
  }

  // Whether panels are widened one at a time, in memory.
  bool widens() const { return copy_panels_ && kHalf; }

  // Points the tile at the columns from j on of B, steps from p on.
  void set_panel(int64_t p, int64_t j) {
    constexpr int64_t kWidth = kPanelWidth<T>;
    if constexpr (kHalf) {
      const int64_t first = j / kHalfWidth * kHalfWidth, in_panel = j - first;
      t_.b_step = half_panel_width(shape_, first);
      t_.b_panel = kWidth;
      t_.b = b_ + first * shape_.k + p * t_.b_step + in_panel;
      if (kBytes) t_.b_scale = scales_ + j;
      if (widens()) widen(in_panel % kWidth);
    } else if (shape_.b_packed) {
      const GemmPanels panels = panels_of<T>(shape_);
      t_.b = b_ + panels.place(p, j);
      t_.b_step = panels.columns;
      t_.b_panel = panels.panel();
      second_ = j % kWidth != 0;
    } else if (groups()) {
      const GemmPanels panels{kWidth, t_.k};
      t_.b = panel_scratch_ + panels.place(0, j - group_begin_);
      t_.b_step = kWidth;
      t_.b_panel = panels.panel();
      second_ = (j - group_begin_) % kWidth != 0;
    } else {
      t_.b = b_ + p * shape_.b_row + j;
      t_.b_step = shape_.b_row;
      t_.b_panel = kWidth;
    }
  }

  // Where the panels lie that are read after those before column j. Three vectors begin in a panel that has been read,
  // or take two new ones.
  void find_next_panels(const GemmRange& range, int64_t p, int64_t j) {
    const GemmPanels panels = panels_of<T>(shape_);
    const int64_t next = (j + kPanelWidth<T> - 1) / kPanelWidth<T> * kPanelWidth<T>;
    next_panels_ = wide_ == 3 && next == j ? 2 : 1;
    next_panel_bytes_ = panels.panel() * int64_t{sizeof(T)};
    if (next < range.column_end) {
      next_panel_ = b_ + panels.place(p, next);
    } else if (p + t_.k < shape_.k) {
      next_panel_ = b_ + panels.place(p + t_.k, range.column_begin);
    } else {
      next_panel_ = b_ + panels.place(0, next_part_);
    }
  }

  // Points the tile at a copy in T of the columns around those it is pointed at, `skipped` of them before.
  void widen(int64_t skipped) {
    constexpr int64_t kWidth = kPanelWidth<T>;
    constexpr int64_t kCount = Lanes<T>::kCount;
    const B* from = static_cast<const B*>(t_.b) - skipped;
    const int64_t step = t_.b_step, steps = t_.k;
    T* to = panel_scratch_;
    if constexpr (kBytes) {
      const auto low = Lanes<T>::load(t_.b_scale - skipped), high = Lanes<T>::load(t_.b_scale - skipped + kCount);
#pragma GCC unroll 4
      for (int64_t p = 0; p < steps; ++p, from += step, to += kWidth) {
        Lanes<T>::store(to, Lanes<T>::mul(load_bytes(from), low));
        Lanes<T>::store(to + kCount, Lanes<T>::mul(load_bytes(from + kCount), high));
      }
    } else {
#pragma GCC unroll 4
      for (int64_t p = 0; p < steps; ++p, from += step, to += kWidth) {
        Lanes<T>::store(to, Lanes<T>::load(from));
        Lanes<T>::store(to + kCount, Lanes<T>::load(from + kCount));
      }
    }
    t_.b = panel_scratch_ + skipped;
    t_.b_step = kWidth;
  }

  void tiles_down(const GemmRange& range, const T* a, int64_t j, int64_t width, const Place& to, const Place& from) {
    constexpr int kCount = Lanes<T>::kCount;
    const int vectors = static_cast<int>((width + kCount - 1) / kCount);
    const int64_t rows = range.row_end - range.row_begin, tiles = tiles_of<T>(rows);
    t_.last_lanes = static_cast<int>(width - (vectors - 1) * kCount);
    tile_epilogue_ = epilogue_;
    int64_t i = range.row_begin;
    for (int64_t tile = 0; tile < tiles; ++tile) {
      const int64_t count = (rows + tile) / tiles;  // the low ones first
      const int64_t end = i + count;
      t_.a = a + (i - range.row_begin) * t_.a_row;
      t_.c = to(i, j);
      t_.sum = from(i, j);
      if (epilogue_.bias != nullptr) {
        tile_epilogue_.bias = epilogue_.bias + i * epilogue_.bias_row + j * epilogue_.bias_col;
      }
      if (epilogue_.addend != nullptr) tile_epilogue_.addend = epilogue_.addend + i * shape_.c_row + j;
      if (from.at != nullptr) {
        if (end < range.row_end) {
          ask_for_sums(from(end, j), kMaxRows<T>);
        } else if (j + width < range.column_end) {
          ask_for_sums(from(range.row_begin, j + width), kMaxRows<T>);
        }
      }
      if (far_) set_next(tile, tiles, vectors);
      pick_tile(count, vectors, t_.last_lanes < kCount)(t_);
      i = end;
    }
  }

  // Of the next tile, about: its first loads would wait for them.
  void ask_for_sums(const T* sums, int64_t rows) const {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t v = 0; v < kPanelWidth<T>; v += kLine / int64_t{sizeof(T)}) {
        __builtin_prefetch(sums + r * t_.sum_row + v);
      }
    }
  }

  // What tile `tile` of the `tiles` that share panels asks for: its part of the next ones. A single tile goes through
  // panels that lie one behind the other.
  void set_next(int64_t tile, int64_t tiles, int vectors) {
    constexpr int64_t kStepBytes = 2 * kVectorBytes;
    if (vectors > 3) {
      t_.next = reinterpret_cast<const char*>(next_panel_);
      return;
    }
    if (tiles == 1) {
      t_.next = static_cast<const char*>(t_.b) + kSingleAhead;
      t_.next_step = kStepBytes;
      return;
    }
    const int64_t part = tile * next_panels_, panel = part / tiles;
    t_.next_step = (kStepBytes * next_panels_ + tiles - 1) / tiles;
    t_.next = reinterpret_cast<const char*>(next_panel_) + panel * next_panel_bytes_ +
              t_.k * kStepBytes * (part % tiles) / tiles;
  }

  TileFunction<T> pick_tile(int64_t rows, int vectors, bool tail) const {
    if constexpr (kHalf) {
      if (!copy_panels_) return widening_tile<B>(rows, vectors);
    }
    return own_tile<T>({mode_, rows, vectors, tail, second_, far_});
  }

  const GemmShape& shape_;
  const bool far_ = !kHalf && shape_.b_packed && static_cast<size_t>(shape_.n * shape_.k) * sizeof(B) > caches().second;
  const T* a_;
  const B* b_;
  const float* scales_;  // of B's columns, of ScaledByte
  T* c_;
  T* panel_scratch_;  // one block of a group of panels, or of one that is widened
  T* rows_scratch_;   // kMaxRows rows of one block of A
  T* sum_scratch_;    // one tile
  T* copy_scratch_;   // one block of rows of A
  int64_t block_steps_;
  const int64_t block_rows_;
  int64_t block_panels_;
  Epilogue<T> epilogue_, tile_epilogue_;
  TileArgs<T> t_;
  TileMode mode_ = TileMode::kRowA;
  const B* next_panel_ = b_;
  int64_t next_panels_ = 1, next_panel_bytes_ = 0;
  int64_t next_part_ = 0;  // first column of what is read next, where B is read backwards
  int wide_ = 0;
  bool strided_a_ = false, copy_panels_ = false, second_ = false;
  bool blocks_rows_, backward_;
  bool copies_rows_ = false, few_rows_ = false;
  StopPoll stop_;
  bool stopped_ = false;                         // it ends early, and its results are of no use
  int64_t group_columns_ = 0, group_begin_ = 0;  // group_begin_: the column that begins a panel
};

template <class T, class B = T>
void run_panels(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
  Gemm<T, B>(plan, operands).run(range);
}

template <class T>
void pack_panels(const GemmPlan& plan, const void* b, void* packed, StopPoll& stop) {
  const GemmShape& s = plan.shape;
  pack_columns(static_cast<const T*>(b), s, s.k, s.n, panels_of<T>(s), static_cast<T*>(packed), stop);
}

// Panels of B that are copied at a time: they stay in the second-level cache, or are so many that the rows that are
// copied next to each other are used for many columns.
template <class T>
int64_t copied_panels(const GemmPlan& plan) {
  constexpr int64_t kWidth = kPanelWidth<T>;
  if (plan.shape.b_packed) return 1;
  const auto bytes = static_cast<int64_t>(plan.blocks_rows ? 2 * caches().second : caches().second / 4);
  const int64_t most = std::max<int64_t>(bytes / (plan.block_steps * kWidth * int64_t{sizeof(T)}), 1);
  return std::clamp<int64_t>((plan.shape.n + kWidth - 1) / kWidth, 1, most);
}

// Cuts the plan into blocks, and says how much scratch they take.
template <class T>
void set_blocks(GemmPlan& plan) {
  constexpr int64_t kWidth = kPanelWidth<T>;
  const GemmShape& s = plan.shape;
  plan.block_steps = std::min(near_steps(), std::max<int64_t>(s.k, 1));
  plan.block_rows = near_rows<T>(plan.block_steps);
  const bool far_steps = s.a_row == 1 && s.a_col * int64_t{sizeof(T)} >= kFarSteps;
  plan.blocks_rows = (s.a_col == 1 || far_steps) && s.n >= kCopyColumns &&
                     static_cast<size_t>(s.m * s.k) * sizeof(T) > caches().second / 2;
  plan.block_panels = copied_panels<T>(plan);
  int64_t elements = plan.block_steps * (plan.block_panels * kWidth + kMaxRows<T>)+kMaxRows<T> * kWidth;
  if (plan.blocks_rows) elements += plan.block_rows * (plan.block_steps + kRowGap<T>);
  plan.scratch_bytes = static_cast<size_t>(elements) * sizeof(T);
}

template <class T>
GemmPlan prepare(ComputeType type, const GemmShape& shape) {
  GemmPlan plan;
  plan.shape = shape;
  plan.type = type;
  if (shape.n <= kGemmDotColumns) {
    plan.packed_b_bytes = static_cast<size_t>(shape.n * shape.k) * sizeof(T);
    plan.scratch_bytes = static_cast<size_t>((shape.n + dot_rows<T>(shape.k)) * shape.k) * sizeof(T);
    plan.run = run_dots<T>;
    plan.pack = pack_dots<T>;
    return plan;
  }
  constexpr int64_t kWidth = kPanelWidth<T>;
  plan.column_step = kWidth;
  plan.packed_b_bytes = static_cast<size_t>((shape.n + kWidth - 1) / kWidth * kWidth * shape.k) * sizeof(T);
  set_blocks<T>(plan);
  plan.run = run_panels<T>;
  plan.pack = pack_panels<T>;
  plan.panels = panels_of<T>(shape);
  plan.alternates = shape.b_packed && plan.packed_b_bytes > caches().first;
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
