#pragma once
// Plans of products of one type of elements. Each type is instantiated in a source of its own, since the tiles of one
// take a compiler tens of seconds.

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "base/caches.h"
#include "kernels/gemm.h"
#include "kernels/isa/gemm/blocked.h"
#include "kernels/isa/gemm/copied.h"
#include "kernels/isa/gemm/direct.h"
#include "kernels/isa/gemm/dots.h"
#include "kernels/isa/gemm/panels.h"
#include "kernels/isa/gemm/rows.h"
#include "kernels/isa/gemm/transposed.h"
#include "kernels/isa/gemm/walk.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// Walks of products whose B is of T, as it is given or packed. The first that fits and pays is taken.
template <class T>
struct WalksOf {
  using Table = WalkTable<GroupedWalk<T>, CopiedWalk<T>, DirectWalk<T>, BlockedWalk<T>>;
};
#if defined(__AVX2__)
template <>
struct WalksOf<float> {
  using Table = WalkTable<TransposedWalk, GroupedWalk<float>, CopiedWalk<float>, DirectWalk<float>, BlockedWalk<float>>;
};
#endif

// Products of one or two columns: their sums have another order, which no other walk gives.
template <class T>
using NarrowProductWalks = WalkTable<DotsWalk<T>>;

// Steps whose panel stays in a near cache: a tall tile takes so few bytes of B for its multiply-adds that they may come
// from the second-level cache; a low one needs them in the first.
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

// Cuts the plan into blocks, and says how much scratch they take (GemmScratch).
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
GemmPlan prepare(ComputeType type, const GemmShape& shape, std::string_view wanted) {
  GemmPlan plan;
  plan.shape = shape;
  plan.type = type;
  if (shape.n <= kGemmDotColumns) {
    plan.packing = "columns";
    plan.packed_b_bytes = static_cast<size_t>(shape.n * shape.k) * sizeof(T);
    plan.scratch_bytes = static_cast<size_t>((shape.n + dot_rows<T>(shape.k)) * shape.k) * sizeof(T);
    plan.pack = pack_dots<T>;
    NarrowProductWalks<T>::choose(plan, wanted);
    return plan;
  }
  plan.column_step = kPanelWidth<T>;
  plan.packed_b_bytes = static_cast<size_t>(padded_columns<T>(shape) * shape.k) * sizeof(T);
  set_blocks<T>(plan);
  plan.packing = "panels";
  plan.pack = pack_panels<T>;
  plan.panels = panels_of<T>(shape);
  plan.alternates = shape.b_packed && plan.packed_b_bytes > caches().first;
  WalksOf<T>::Table::choose(plan, wanted);
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
