#pragma once
// A B that is not packed: the run copies groups of its columns to panels and multiplies by these.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "kernels/gemm.h"
#include "kernels/isa/gemm/columns.h"
#include "kernels/isa/gemm/rows.h"
#include "kernels/isa/gemm/steps.h"
#include "kernels/isa/gemm/tiler.h"
#include "kernels/isa/gemm/walk.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Calls fn(group) for `columns` columns of the range after the others.
template <class Fn>
void each_group(const GemmRange& range, int64_t columns, const Fn& fn) {
  GemmRange group = range;
  for (; group.column_begin < range.column_end; group.column_begin = group.column_end) {
    group.column_end = std::min(group.column_begin + columns, range.column_end);
    fn(group);
  }
}

// Multiplies by the columns of one group after it has copied them. False: it was told to stop.
template <class T>
bool add_copied(Tiler<T, CopiedColumns<T>>& tiler, const RowBlocks<T>& blocks, const GemmRange& group,
                const StepBlock<T>& steps) {
  if (tiler.stopped()) return false;
  tiler.columns().copy(group, steps);
  blocks.each(group, steps, [&](const GemmRange& block, const TileRows<T>& rows) { tiler.add(block, rows, steps); });
  return !tiler.stopped();
}

// Many rows: blocks of steps, for each of them groups of as many panels as stay in the second-level cache, for each of
// those all rows.
template <class T>
struct CopiedWalk {
  static constexpr std::string_view kName = "copied";
  static bool fits(const GemmPlan& plan, int64_t) { return !plan.shape.b_packed; }
  static bool pays(const GemmPlan&, int64_t rows) { return rows >= kPackRows; }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    Tiler<T, CopiedColumns<T>> tiler(plan, operands);
    const RowBlocks<T> blocks(plan, operands, range);
    const auto add = [&](const GemmRange& part, const StepBlock<T>& steps) {
      each_group(part, plan.block_panels * kPanelWidth<T>,
                 [&](const GemmRange& group) { add_copied(tiler, blocks, group, steps); });
      return !tiler.stopped();
    };
    each_step_block<T>(plan, operands, range, plan.block_steps, add);
  }
};

// Few rows, and columns that are not contiguous: groups of so few panels and steps that they stay in the first-level
// cache, each through all of k, so that a transposed B is read along its rows.
template <class T>
struct GroupedWalk {
  static constexpr std::string_view kName = "grouped";
  static bool fits(const GemmPlan& plan, int64_t) { return !plan.shape.b_packed; }
  static bool pays(const GemmPlan& plan, int64_t rows) { return plan.shape.b_col != 1 && rows < kPackRows; }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    Tiler<T, CopiedColumns<T>> tiler(plan, operands);
    const RowBlocks<T> blocks(plan, operands, range);
    const auto [panels, steps_at_a_time] = group_size(plan, operands);
    const auto add = [&](const GemmRange& part, const StepBlock<T>& steps) {
      return add_copied(tiler, blocks, part, steps);
    };
    each_group(range, panels * kPanelWidth<T>, [&](const GemmRange& group) {
      if (!tiler.stopped()) each_step_block<T>(plan, operands, group, steps_at_a_time, add);
    });
  }

 private:
  struct Size {
    int64_t panels, steps;
  };
  static Size group_size(const GemmPlan& plan, const GemmOperands& operands) {
    constexpr int64_t kPanels = 4, kBytes = 16384;  // as many panels as the widest tile reads
    constexpr int64_t kPanelBytes = kPanelWidth<T> * int64_t{sizeof(T)};
    // More blocks would have each tile go through its own copy of the columns (each_step_block).
    if (has_bias_in_place(operands)) return {plan.block_panels, plan.block_steps};
    const int64_t steps = std::min(plan.block_steps, kBytes / (kPanels * kPanelBytes));
    return {std::min(kPanels, plan.block_panels * plan.block_steps / steps), steps};
  }
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
