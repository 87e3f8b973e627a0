#pragma once
// Products by panels of Half and of ScaledByte. Few rows have their tiles widen what they read; for many rows, and for
// rows that are not contiguous, each panel is widened to floats in memory first.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/caches.h"
#include "kernels/gemm.h"
#include "kernels/isa/gemm/blocked.h"
#include "kernels/isa/gemm/direct.h"
#include "kernels/isa/gemm/narrow_columns.h"
#include "kernels/isa/gemm/walk.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// More rows make up for widening a panel first.
inline constexpr int64_t kWideningRows = (kVectorBytes > 16 ? 3 : 1) * kMaxRows<float>;

template <class B>
struct WidenedWalk {
  static constexpr std::string_view kName = "widened";
  static bool fits(const GemmPlan&, int64_t) { return true; }
  static bool pays(const GemmPlan& plan, int64_t rows) { return rows > kWideningRows || plan.shape.a_col != 1; }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    run_blocked<float, WidenedColumns<B>>(plan, operands, range);
  }
};

template <class B>
struct NarrowDirectWalk {
  static constexpr std::string_view kName = DirectWalk<float>::kName;
  static bool fits(const GemmPlan& plan, int64_t) { return plan.shape.a_col == 1; }
  static bool pays(const GemmPlan&, int64_t rows) { return rows <= kMaxRows<float>; }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    run_direct<float, NarrowColumns<B>>(plan, operands, range);
  }
};

template <class B>
struct NarrowBlockedWalk {
  static constexpr std::string_view kName = BlockedWalk<float>::kName;
  static bool fits(const GemmPlan& plan, int64_t) { return plan.shape.a_col == 1; }
  static bool pays(const GemmPlan&, int64_t) { return true; }
  static void run(const GemmPlan& plan, const GemmOperands& operands, const GemmRange& range) {
    run_blocked<float, NarrowColumns<B>>(plan, operands, range);
  }
};

template <class B>
using NarrowWalks = WalkTable<WidenedWalk<B>, NarrowDirectWalk<B>, NarrowBlockedWalk<B>>;

// Gives a plan of floats panels of B. `bytes`: of the packed B; `wanted`: the name of a walk (walk.h).
template <class B>
void use_narrow_panels(GemmPlan& plan, size_t bytes, std::string_view packing, GemmPack pack, std::string_view wanted) {
  plan.packed_b_bytes = bytes;
  plan.packing = packing;
  plan.pack = pack;
  plan.panels = {};
  plan.alternates = bytes > caches().first;
  NarrowWalks<B>::choose(plan, wanted);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
