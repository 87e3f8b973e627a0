#pragma once
// Many rows, and rows that have to be copied. Three loops, outermost first: blocks of steps, whose panels stay in a
// near cache; blocks of rows, which stay in the second-level cache; all panels of B, as they lie.

#include <cstdint>
#include <string_view>

#include "kernels/gemm.h"
#include "kernels/isa/gemm/columns.h"
#include "kernels/isa/gemm/rows.h"
#include "kernels/isa/gemm/steps.h"
#include "kernels/isa/gemm/tiler.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template <class T, class Columns>
void run_blocked(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
  Tiler<T, Columns> tiler(plan, operands);
  const RowBlocks<T> blocks(plan, operands, range);
  const auto add = [&](const GemmRange& part, const StepBlock<T>& steps) {
    blocks.each(part, steps, [&](const GemmRange& block, const TileRows<T>& rows) { tiler.add(block, rows, steps); });
    return !tiler.stopped();
  };
  each_step_block<T>(plan, operands, range, plan.block_steps, add);
}

// B of T, packed or with contiguous rows.
template <class T>
struct BlockedWalk {
  static constexpr std::string_view kName = "blocked";
  static bool fits(const GemmPlan& plan, int64_t) { return plan.shape.b_packed || plan.shape.b_col == 1; }
  static bool pays(const GemmPlan&, int64_t) { return true; }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    plan.shape.b_packed ? run_blocked<T, PackedColumns<T>>(plan, operands, range)
                        : run_blocked<T, GivenColumns<T>>(plan, operands, range);
  }
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
