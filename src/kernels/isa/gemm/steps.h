#pragma once
// The steps of a product: k cut into blocks. Partial sums travel from block to block through memory, which leaves each
// element's chain as it is.

#include <algorithm>
#include <cstdint>

#include "kernels/gemm.h"
#include "kernels/isa/gemm_pack.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Sums of elements of C in memory, from element (row, column) of C on; null: there are none, all are zero.
template <class T>
struct StoredSums {
  T* at = nullptr;
  int64_t stride = 0;
  int64_t row = 0, column = 0;
  T* operator()(int64_t i, int64_t j) const { return at == nullptr ? nullptr : at + (i - row) * stride + (j - column); }
};

// Steps [begin, begin + count): products are added to the sums in `from` and stored in `to`.
template <class T>
struct StepBlock {
  int64_t begin, count;
  StoredSums<T> from, to;
  bool is_last;  // the sums are complete behind it: the epilogue follows
};

// The scratch of a run (GemmOperands::scratch). set_blocks() says how much there is.
template <class T>
struct GemmScratch {
  GemmScratch(const GemmPlan& plan, const GemmOperands& operands)
      : panels(static_cast<T*>(operands.scratch)),
        tile_rows(panels + plan.block_panels * plan.block_steps * kPanelWidth<T>),
        sums(tile_rows + plan.block_steps * kMaxRows<T>),
        rows(sums + kMaxRows<T> * kPanelWidth<T>) {}

  T* panels;     // of B: one block of a group of panels
  T* tile_rows;  // of A: one block of the rows of a tile
  T* sums;       // of one tile
  T* rows;       // of A: one block, where the plan copies rows
};

// All blocks of steps of one range. fn(range, block) returns false to end early.
template <class T, class Fn>
bool chain_blocks(int64_t k, int64_t most, const GemmRange& range, const StoredSums<T>& c, const StoredSums<T>& partial,
                  const Fn& fn) {
  int64_t p = 0;
  do {  // a sum of nothing is a result, too
    const int64_t count = std::min(most, k - p);
    const bool is_last = p + count == k;
    if (!fn(range, StepBlock<T>{p, count, p == 0 ? StoredSums<T>{} : partial, is_last ? c : partial, is_last})) {
      return false;
    }
    p += count;
  } while (p < k);
  return true;
}

inline bool has_bias_in_place(const GemmOperands& operands) {
  return operands.bias == operands.c;
}

// Partial sums wait in C. Where the bias lies there, partial sums wait in scratch, so a range is one tile.
template <class T, class Fn>
[[gnu::noinline]] void each_of_many_blocks(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range,
                                           int64_t most, const StoredSums<T>& c, const Fn& fn) {
  const int64_t k = plan.shape.k;
  if (!has_bias_in_place(operands)) {
    chain_blocks(k, most, range, c, c, fn);
    return;
  }
  T* const sums = GemmScratch<T>(plan, operands).sums;
  for (int64_t i = range.row_begin; i < range.row_end; i += kMaxRows<T>) {
    for (int64_t j = range.column_begin; j < range.column_end; j += kPanelWidth<T>) {
      const GemmRange tile{i, std::min<int64_t>(i + kMaxRows<T>, range.row_end), j,
                           std::min<int64_t>(j + kPanelWidth<T>, range.column_end)};
      if (!chain_blocks(k, most, tile, c, StoredSums<T>{sums, kPanelWidth<T>, i, j}, fn)) return;
    }
  }
}

// Cuts k into blocks of at most `most` steps and calls fn(range, block) for one after the other until it returns false.
// Most products are one block, so that case is inlined.
template <class T, class Fn>
[[gnu::always_inline]] inline void each_step_block(const GemmPlan& plan, const GemmOperands& operands,
                                                   const GemmRange& range, int64_t most, const Fn& fn) {
  const StoredSums<T> c{static_cast<T*>(operands.c), plan.shape.c_row};
  if (plan.shape.k <= most) {
    fn(range, StepBlock<T>{0, plan.shape.k, {}, c, true});
  } else {
    each_of_many_blocks<T>(plan, operands, range, most, c, fn);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
