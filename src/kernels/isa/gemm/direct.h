#pragma once
// Few rows: one tile is as high as the range and takes all of k, so that B is read once, as it lies. B may be read from
// its last columns to its first, too.

#include <cstdint>
#include <string_view>

#include "kernels/gemm.h"
#include "kernels/isa/gemm/columns.h"
#include "kernels/isa/gemm/rows.h"
#include "kernels/isa/gemm/steps.h"
#include "kernels/isa/gemm/tiler.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// A tile of more steps could not be stopped in time.
inline constexpr int64_t kLongTile = 1 << 16;

template <class T, class Columns>
void run_direct(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
  Tiler<T, Columns> tiler(plan, operands);
  const bool backward = operands.backward && plan.shape.b_packed;
  const auto add = [&](const GemmRange& part, const StepBlock<T>& steps) {
    const TileRows<T> rows = rows_in_place<T>(plan.shape, operands, part.row_begin, steps.begin);
    if (backward) {
      tiler.add_backward(part, rows, steps);
    } else {
      tiler.add(part, rows, steps);
    }
    return !tiler.stopped();
  };
  each_step_block<T>(plan, operands, range, kLongTile, add);
}

// B of T, packed or with contiguous rows.
template <class T>
struct DirectWalk {
  static constexpr std::string_view kName = "direct";
  static bool fits(const GemmPlan& plan, int64_t rows) {
    return (plan.shape.b_packed || plan.shape.b_col == 1) && reads_in_place(plan.shape, rows);
  }
  static bool pays(const GemmPlan&, int64_t rows) { return rows <= kMaxRows<T>; }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    plan.shape.b_packed ? run_direct<T, PackedColumns<T>>(plan, operands, range)
                        : run_direct<T, GivenColumns<T>>(plan, operands, range);
  }
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
