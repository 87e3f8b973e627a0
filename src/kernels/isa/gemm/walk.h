#pragma once
// The walks of products: in which order the tiles of a product are computed, and what is copied before them. All walks
// give the same bits. Each has a header of its own with a class:
//
//   kName               its name
//   fits(plan, rows)    whether it computes so many rows of the product
//   pays(plan, rows)    whether it is quicker than the walks behind it in the table
//   run(plan, operands, range)
//
// A table lists the walks of one kind of products. m is only a hint, so each run takes the walk for its own rows.

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/gemm.h"

namespace treadle::kernels {

// A walk as a plan holds it that was told to take it.
struct GemmWalk {
  std::string_view name;
  bool (*fits)(const GemmPlan& plan, int64_t rows);
  GemmRun run;
};

}  // namespace treadle::kernels

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// From so many rows on a panel of unpacked B is used often enough to be copied first.
inline constexpr int64_t kPackRows = 24;

template <class... Walks>
class WalkTable {
 public:
  static void add_names(std::vector<std::string_view>& names) { (names.push_back(Walks::kName), ...); }

  // Sets the plan's walk. `wanted`: the walk to take wherever it fits, if the table has it.
  static void choose(GemmPlan& plan, std::string_view wanted) {
    const int64_t rows = plan.shape.m;
    plan.run = run;
    plan.wanted = nullptr;
    for (const GemmWalk& walk : kRows) {
      if (walk.name == wanted) plan.wanted = &walk;
    }
    if (plan.wanted != nullptr && plan.wanted->fits(plan, rows)) {
      plan.walk = plan.wanted->name;
    } else {
      with_walk(plan, rows, [&]<class Walk>() { plan.walk = Walk::kName; });
    }
  }

 private:
  static constexpr GemmWalk kRows[] = {{Walks::kName, Walks::fits, Walks::run}...};

  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    const int64_t rows = range.row_end - range.row_begin;
    if (rows <= 0 || range.column_end <= range.column_begin) return;
    if (plan.wanted != nullptr && plan.wanted->fits(plan, rows)) return plan.wanted->run(plan, operands, range);
    with_walk(plan, rows, [&]<class Walk>() { Walk::run(plan, operands, range); });
  }

  // Calls fn with the first walk that fits and pays. All of it is inlined: a GEMV is too short to go through pointers.
  template <class Fn>
  [[gnu::always_inline]] static void with_walk(const GemmPlan& plan, int64_t rows, const Fn& fn) {
    const auto takes = [&]<class Walk>() __attribute__((always_inline)) {
      if (!Walk::fits(plan, rows) || !Walk::pays(plan, rows)) return false;
      fn.template operator()<Walk>();
      return true;
    };
    static_cast<void>((takes.template operator()<Walks>() || ...));
  }
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
