#pragma once
// A few rows of A times a transposed B: columns of B are transposed in registers. A group of columns has its sums over
// whole fours of steps made first (transposed_sums.h). A tile adds the steps that are left and applies the epilogue.

#if defined(__AVX2__)

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "kernels/gemm.h"
#include "kernels/isa/gemm/copied.h"
#include "kernels/isa/gemm/rows.h"
#include "kernels/isa/gemm/steps.h"
#include "kernels/isa/gemm/tiler.h"
#include "kernels/isa/gemm/transposed_sums.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

struct TransposedWalk {
  static constexpr std::string_view kName = "transposed";
  static bool fits(const GemmPlan& plan, int64_t rows) {
    const GemmShape& s = plan.shape;
    return !s.b_packed && s.b_row == 1 && rows <= kTransposedRows;
  }
  // Several rows share a copy of short columns of B, which costs them less.
  static bool pays(const GemmPlan& plan, int64_t rows) {
    const GemmShape& s = plan.shape;
    return s.b_col != 1 && s.n >= kTransposedColumns && s.k >= (rows == 1 ? kTransposedSteps : kTransposedLong);
  }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    const int64_t done = run_whole_columns(plan, operands, range);
    if (done == range.column_end) return;
    GroupedWalk<float>::run(plan, operands, {range.row_begin, range.row_end, done, range.column_end});
  }

 private:
  // Returns the first column that is not done.
  static int64_t run_whole_columns(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    constexpr int64_t kRoom = kMaxRows<float> * kPanelWidth<float>;
    const GemmShape& s = plan.shape;
    const int64_t steps = s.k - s.k % kTransposedSteps, rows = range.row_end - range.row_begin;
    const int64_t stride = kRoom / rows / kTransposedColumns * kTransposedColumns;
    const int64_t lag = s.b_col * int64_t{sizeof(float)} % kCacheWay == 0 ? std::min(kTransposedLag, steps) : 0;
    float* const sums = GemmScratch<float>(plan, operands).sums;
    Tiler<float, CopiedColumns<float>> tiler(plan, operands);
    const RowBlocks<float> blocks(plan, operands, range);
    GemmRange part = range;
    for (;; part.column_begin = part.column_end) {
      const int64_t columns =
          std::min(stride, (range.column_end - part.column_begin) / kTransposedColumns * kTransposedColumns);
      if (columns == 0) return part.column_begin;
      part.column_end = part.column_begin + columns;
      const TransposedOperands transposed{static_cast<const float*>(operands.a) + part.row_begin * s.a_row,
                                          s.a_row,
                                          s.a_col,
                                          static_cast<const float*>(operands.b) + part.column_begin * s.b_col,
                                          s.b_col,
                                          sums,
                                          stride};
      for (int64_t j = 0; j < columns; j += kTransposedColumns) transposed_sums(rows, transposed, j, steps, lag);
      add_copied(tiler, blocks, part,
                 {steps,
                  s.k - steps,
                  {sums, stride, part.row_begin, part.column_begin},
                  {static_cast<float*>(operands.c), s.c_row},
                  true});
    }
  }
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE

#endif
