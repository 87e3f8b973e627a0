// Matrix products of 32- and 64-bit elements: drives register tiles over rows, panels of columns and blocks of k.
//
// Loops, outermost first: blocks of k (the panel of one block stays in the first-level cache), panels of B, tiles of
// rows. Few rows take several panels at a time instead (a GEMV needs many independent chains), and all of k in one go,
// so that B is read once, from its first columns on or from its last. Partial sums travel from block to block through
// C, which leaves each element's chain as it is.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/entry.h"
#include "kernels/isa/gemm_dot.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {
namespace {

constexpr int64_t kPanelBlockBytes = 32 << 10;
constexpr size_t kNearBytes = 32 << 10;  // all in the first-level cache
constexpr int64_t kPackRows = 24;        // from here on a panel of unpacked B is used often enough to be copied first

template <class T>
constexpr int64_t kStepsPerBlock = kPanelBlockBytes / (kPanelWidth<T> * int64_t{sizeof(T)});

// Vectors per tile for `rows` rows where several panels are at hand: enough chains to hide the latency of an addition.
template <class T>
constexpr int wide_vectors(int64_t rows) {
  if (rows == 1) return 8;
  if (rows == 2) return kVectorRegisters == 32 ? 8 : 4;
  if (rows <= 4 && kVectorRegisters == 32) return 4;
  return 2;
}

template <class T, TileMode kMode, class B = T, int kAhead = 0>
TileFunction<T> wide_tile(int64_t rows, int vectors) {
  constexpr bool kLong = kVectorRegisters == 32;
  if (rows == 1) return vectors == 8 ? tile<T, 1, 8, kMode, false, B, kAhead> : tile<T, 1, 4, kMode, false, B, kAhead>;
  if (rows == 2) {
    if constexpr (kLong) {
      if (vectors == 8) return tile<T, 2, 8, kMode, false, B, kAhead>;
    }
    return tile<T, 2, 4, kMode, false, B, kAhead>;
  }
  if constexpr (kLong) {
    if (rows == 3) return tile<T, 3, 4, kMode, false, B, kAhead>;
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
constexpr int64_t kOuterBytes = 1 << 20;
constexpr int kFarAhead = 1024, kHalfAhead = 2048;

// Tiles on panels of Half, for rows that lie in order and are too few to make up for widening a panel first: a tile
// widens what it reads, which takes one instruction where there is one for it.
constexpr int64_t kHalfRows = (kVectorBytes > 16 ? 3 : 1) * kMaxRows<float>;

TileFunction<float> half_tile(int64_t rows, int vectors) {
  constexpr auto kRowA = TileMode::kRowA;
  if (vectors > 2) return wide_tile<float, kRowA, Half, kHalfAhead>(rows, vectors);
  return (vectors == 1 ? kTileTable<float, 1, kRowA, true, Half> : kTileTable<float, 2, kRowA, true, Half>)[rows - 1];
}

// Panels of Half are as wide as the widest tile, so that a row times a matrix is one stream: such matrices come from
// far away. The last one is as wide as what is left, in whole panels of float.
constexpr int64_t kHalfWidth = 8 * Lanes<float>::kCount;

int64_t half_panel_width(const GemmShape& shape, int64_t first) {
  constexpr int64_t kWidth = kPanelWidth<float>;
  return std::min(kHalfWidth, (shape.n - first + kWidth - 1) / kWidth * kWidth);
}

template <class T>
constexpr GemmPanels panels_of(const GemmShape& shape) {
  return {kPanelWidth<T>, shape.k};
}

// One run of a plan over one range. Elements of B are Half where the plan's panels are.
template <class T, class B = T>
class Gemm {
 public:
  Gemm(const GemmPlan& plan, const GemmOperands& operands)
      : shape_(plan.shape),
        a_(static_cast<const T*>(operands.a)),
        b_(static_cast<const B*>(operands.b)),
        c_(static_cast<T*>(operands.c)),
        panel_scratch_(static_cast<T*>(operands.scratch)),
        rows_scratch_(panel_scratch_ + kStepsPerBlock<T> * kPanelWidth<T>),
        sum_scratch_(rows_scratch_ + kStepsPerBlock<T> * kMaxRows<T>),
        epilogue_(make_epilogue<T>(plan, operands)),
        backward_(operands.backward && plan.shape.b_packed) {}

  void run(const GemmRange& range) {
    const int64_t rows = range.row_end - range.row_begin;
    if (rows <= 0 || range.column_end <= range.column_begin) return;
    strided_a_ = shape_.a_col != 1 && shape_.a_row != 1 && rows > 1;
    copy_panels_ =
        kHalf ? rows > kHalfRows || shape_.a_col != 1 : !shape_.b_packed && (shape_.b_col != 1 || rows >= kPackRows);
    const bool blocked = copy_panels_ || strided_a_ || rows > kMaxRows<T>;
    backward_ &= !blocked;
    if (!blocked || shape_.k <= kStepsPerBlock<T>) {
      block(range, 0, shape_.k, {c_, shape_.c_row}, {});
    } else if (epilogue_.bias != c_) {
      run_blocks(range, {c_, shape_.c_row});
    } else {
      run_in_place(range);
    }
  }

 private:
  static constexpr bool kHalf = !std::is_same_v<B, T>;

  // A place for elements of C, from element (row, column) of C on.
  struct Place {
    T* at = nullptr;
    int64_t stride = 0;
    int64_t row = 0, column = 0;
    T* operator()(int64_t i, int64_t j) const {
      return at == nullptr ? nullptr : at + (i - row) * stride + (j - column);
    }
  };

  // All of k in blocks; `sums` is where partial sums wait.
  void run_blocks(const GemmRange& range, const Place& sums) {
    for (int64_t p = 0; p < shape_.k; p += kStepsPerBlock<T>) {
      const int64_t steps = std::min(kStepsPerBlock<T>, shape_.k - p);
      const bool last = p + steps == shape_.k;
      block(range, p, steps, last ? Place{c_, shape_.c_row} : sums, p == 0 ? Place{} : sums);
    }
  }

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
      mode_ = shape_.a_col == 1 ? TileMode::kRowA : TileMode::kColumnA;
      t_.a_row = shape_.a_row;
      t_.a_col = shape_.a_col;
      columns(range, a_ + range.row_begin * shape_.a_row + p * shape_.a_col, p, to, from);
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

  void columns(const GemmRange& range, const T* a, int64_t p, const Place& to, const Place& from) {
    if (!backward_) return columns_in_order(range, a, p, to, from);
    constexpr int64_t kStep = 8 * Lanes<T>::kCount;
    GemmRange part = range;
    while (part.column_end > range.column_begin) {
      part.column_begin = std::max(range.column_begin, (part.column_end - 1) / kStep * kStep);
      columns_in_order(part, a, p, to, from);
      part.column_end = part.column_begin;
    }
  }

  void columns_in_order(const GemmRange& range, const T* a, int64_t p, const Place& to, const Place& from) {
    constexpr int64_t kWidth = kPanelWidth<T>;
    const int64_t rows = range.row_end - range.row_begin;
    for (int64_t j = range.column_begin; j < range.column_end;) {
      const int64_t left = range.column_end - j;
      const int64_t in_panel = shape_.b_packed ? kWidth - j % kWidth : kWidth;
      int64_t width = std::min(left, in_panel);
      if (!copy_panels_ && in_panel == kWidth) {
        const int64_t most = kHalf ? std::min(left, kHalfWidth - j % kHalfWidth) : left;
        for (int64_t wide = wide_vectors<T>(rows) * Lanes<T>::kCount; wide > kWidth; wide /= 2) {
          if (wide <= most) {
            width = wide;
            break;
          }
        }
      }
      set_panel(p, j, width);
      tiles_down(range, a, j, width, to, from);
      j += width;
    }
  }

  // Points the tile at `count` columns from j on of B, steps from p on.
  void set_panel(int64_t p, int64_t j, int64_t count) {
    constexpr int64_t kWidth = kPanelWidth<T>;
    if constexpr (kHalf) {
      const int64_t first = j / kHalfWidth * kHalfWidth, in_panel = j - first;
      t_.b_step = half_panel_width(shape_, first);
      t_.b_panel = kWidth;
      t_.b = b_ + first * shape_.k + p * t_.b_step + in_panel;
      if (copy_panels_) widen(in_panel % kWidth);
    } else if (shape_.b_packed) {
      const GemmPanels panels = panels_of<T>(shape_);
      t_.b = b_ + panels.place(p, j);
      t_.b_step = panels.columns;
      t_.b_panel = panels.panel();
    } else if (copy_panels_) {
      pack_panel(b_ + p * shape_.b_row + j * shape_.b_col, shape_.b_row, shape_.b_col, t_.k, count, kWidth,
                 panel_scratch_);
      t_.b = panel_scratch_;
      t_.b_step = kWidth;
      t_.b_panel = 0;
    } else {
      t_.b = b_ + p * shape_.b_row + j;
      t_.b_step = shape_.b_row;
      t_.b_panel = kWidth;
    }
  }

  // Points the tile at a copy in T of the columns of Half around those it is pointed at, `skipped` of them before.
  void widen(int64_t skipped) {
    constexpr int64_t kWidth = kPanelWidth<T>;
    const B* from = static_cast<const B*>(t_.b) - skipped;
    for (int64_t p = 0; p < t_.k; ++p) {
      for (int64_t i = 0; i < kWidth; i += Lanes<T>::kCount) {
        Lanes<T>::store(panel_scratch_ + p * kWidth + i, Lanes<T>::load(from + p * t_.b_step + i));
      }
    }
    t_.b = panel_scratch_ + skipped;
    t_.b_step = kWidth;
  }

  void tiles_down(const GemmRange& range, const T* a, int64_t j, int64_t width, const Place& to, const Place& from) {
    constexpr int kCount = Lanes<T>::kCount;
    const int vectors = static_cast<int>((width + kCount - 1) / kCount);
    const int64_t height = balanced_rows<T>(range.row_end - range.row_begin);
    t_.last_lanes = static_cast<int>(width - (vectors - 1) * kCount);
    tile_epilogue_ = epilogue_;
    for (int64_t i = range.row_begin; i < range.row_end; i += height) {
      const int64_t count = std::min(height, range.row_end - i);
      t_.a = a + (i - range.row_begin) * t_.a_row;
      t_.c = to(i, j);
      t_.sum = from(i, j);
      if (epilogue_.bias != nullptr) {
        tile_epilogue_.bias = epilogue_.bias + i * epilogue_.bias_row + j * epilogue_.bias_col;
      }
      if (epilogue_.addend != nullptr) tile_epilogue_.addend = epilogue_.addend + i * shape_.c_row + j;
      pick_tile(count, vectors, t_.last_lanes < kCount)(t_);
    }
  }

  TileFunction<T> pick_tile(int64_t rows, int vectors, bool tail) const {
    if constexpr (kHalf) {
      if (!copy_panels_) return half_tile(rows, vectors);
    }
    if (vectors <= 2) return narrow_tile<T>(mode_, rows, vectors, tail);
    if constexpr (std::is_same_v<T, float>) {
      if (far_ && mode_ == TileMode::kRowA) return wide_tile<T, TileMode::kRowA, T, kFarAhead>(rows, vectors);
    }
    return mode_ == TileMode::kRowA ? wide_tile<T, TileMode::kRowA>(rows, vectors)
                                    : wide_tile<T, TileMode::kColumnA>(rows, vectors);
  }

  const GemmShape& shape_;
  const bool far_ = shape_.b_packed && shape_.n * shape_.k * int64_t{sizeof(B)} > kOuterBytes;
  const T* a_;
  const B* b_;
  T* c_;
  T* panel_scratch_;  // one block of one panel
  T* rows_scratch_;   // one block of kMaxRows rows of A
  T* sum_scratch_;    // one tile
  Epilogue<T> epilogue_, tile_epilogue_;
  TileArgs<T> t_;
  TileMode mode_ = TileMode::kRowA;
  bool strided_a_ = false, copy_panels_ = false, backward_;
};

template <class T, class B = T>
void run_panels(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
  Gemm<T, B>(plan, operands).run(range);
}

template <class T>
void pack_panels(const GemmPlan& plan, const void* b, void* packed) {
  constexpr int64_t kWidth = kPanelWidth<T>;
  const GemmShape& s = plan.shape;
  for (int64_t j = 0; j < s.n; j += kWidth) {
    pack_panel(static_cast<const T*>(b) + j * s.b_col, s.b_row, s.b_col, s.k, std::min(kWidth, s.n - j), kWidth,
               static_cast<T*>(packed) + panels_of<T>(s).place(0, j));
  }
}

// As pack_panels, a block of steps at a time.
void pack_half_panels(const GemmPlan& plan, const void* b, void* packed) {
  constexpr int64_t kSteps = 16;
  const GemmShape& s = plan.shape;
  float block[kSteps * kHalfWidth];
  for (int64_t j = 0; j < s.n; j += kHalfWidth) {
    Half* panel = static_cast<Half*>(packed) + j * s.k;
    const int64_t width = half_panel_width(s, j);
    for (int64_t p = 0; p < s.k; p += kSteps) {
      const int64_t steps = std::min(kSteps, s.k - p);
      pack_panel(static_cast<const float*>(b) + p * s.b_row + j * s.b_col, s.b_row, s.b_col, steps,
                 std::min(width, s.n - j), width, block);
      for (int64_t i = 0; i < steps * width; i += Lanes<float>::kCount) {
        Lanes<float>::store(panel + p * width + i, Lanes<float>::load(block + i));
      }
    }
  }
}

template <class T>
GemmPlan prepare(ComputeType type, const GemmShape& shape) {
  GemmPlan plan;
  plan.shape = shape;
  plan.type = type;
  if (shape.n <= kGemmDotColumns) {
    plan.packed_b_bytes = static_cast<size_t>(shape.n * shape.k) * sizeof(T);
    plan.scratch_bytes = static_cast<size_t>((shape.n + kDotRows) * shape.k) * sizeof(T);
    plan.run = run_dots<T>;
    plan.pack = pack_dots<T>;
    return plan;
  }
  constexpr int64_t kWidth = kPanelWidth<T>;
  plan.column_step = kWidth;
  plan.packed_b_bytes = static_cast<size_t>((shape.n + kWidth - 1) / kWidth * kWidth * shape.k) * sizeof(T);
  plan.scratch_bytes = static_cast<size_t>(kStepsPerBlock<T> * (kWidth + kMaxRows<T>)+kMaxRows<T> * kWidth) * sizeof(T);
  plan.run = run_panels<T>;
  plan.pack = pack_panels<T>;
  plan.panels = panels_of<T>(shape);
  if constexpr (std::is_same_v<T, float>) {
    if (shape.b_packed && shape.b_half) {
      plan.packed_b_bytes = plan.packed_b_bytes / sizeof(T) * sizeof(Half);
      plan.run = run_panels<T, Half>;
      plan.pack = pack_half_panels;
      plan.panels = {};
    }
  }
  plan.alternates = shape.b_packed && plan.packed_b_bytes > kNearBytes;
  return plan;
}

}  // namespace

GemmPlan prepare_gemm(ComputeType type, const GemmShape& shape) {
  switch (type) {
    case ComputeType::kF64:
      return prepare<double>(type, shape);
    case ComputeType::kI32:
    case ComputeType::kU32:
      return prepare<uint32_t>(type, shape);
    case ComputeType::kI64:
    case ComputeType::kU64:
      return prepare<uint64_t>(type, shape);
    default:
      return prepare<float>(type, shape);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
