#pragma once
// The columns of a B in panels of Half or of ScaledByte as tiles of floats read them (columns.h).

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/gemm.h"
#include "kernels/isa/gemm/columns.h"
#include "kernels/isa/gemm/panels.h"
#include "kernels/isa/gemm/tile_choice.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

// The tiles widen what they read, which takes one instruction where there is one for it.
template <class B>
class NarrowColumns : public NearColumns {
 public:
  NarrowColumns(const GemmPlan& plan, const GemmOperands& operands)
      : shape_(plan.shape), b_(panels_in<B>(operands.b, plan.shape)), scales_(static_cast<const float*>(operands.b)) {}

  static int vectors(int64_t rows) { return wide_vectors<float>(balanced_rows<float>(rows)); }
  static int64_t width(int64_t j, int64_t left, int vectors) {
    constexpr int64_t kWidth = kPanelWidth<float>;
    const int64_t in_panel = kWidth - j % kWidth;
    if (vectors == 3) return std::min(left, in_panel);  // no tile widens three
    return tile_width<float>(std::min(left, kHalfWidth - j % kHalfWidth), in_panel, vectors);
  }
  void point(TileArgs<float>& t, int64_t step, int64_t j) const {
    const int64_t first = j / kHalfWidth * kHalfWidth;
    t.b_step = half_panel_width(shape_, first);
    t.b_panel = kPanelWidth<float>;
    t.b = b_ + first * shape_.k + step * t.b_step + (j - first);
    if (std::is_same_v<B, ScaledByte>) t.b_scale = scales_ + j;
  }
  static TileFunction<float> tile(TileMode, int64_t rows, int vectors, bool) { return widening_tile<B>(rows, vectors); }

 private:
  const GemmShape& shape_;
  const B* b_;
  const float* scales_;  // of the columns, of ScaledByte
};

// A block of each panel is widened to floats in scratch before the tiles read it.
template <class B>
class WidenedColumns : public NearColumns {
 public:
  WidenedColumns(const GemmPlan& plan, const GemmOperands& operands)
      : narrow_(plan, operands), to_(GemmScratch<float>(plan, operands).panels) {}

  static int vectors(int64_t) { return 2; }
  static int64_t width(int64_t j, int64_t left, int) { return std::min(left, kWidth - j % kWidth); }
  void point(TileArgs<float>& t, int64_t step, int64_t j) const {
    const int64_t skipped = j % kWidth;
    narrow_.point(t, step, j - skipped);
    widen(t);
    t.b = to_ + skipped;
    t.b_step = kWidth;
  }
  static TileFunction<float> tile(TileMode mode, int64_t rows, int vectors, bool tail) {
    return own_tile<float>({mode, rows, vectors, tail, false, false});
  }

 private:
  static constexpr int64_t kWidth = kPanelWidth<float>, kCount = Lanes<float>::kCount;

  void widen(const TileArgs<float>& t) const {
    using L = Lanes<float>;
    const B* from = static_cast<const B*>(t.b);
    const int64_t step = t.b_step, steps = t.k;
    float* to = to_;
    if constexpr (std::is_same_v<B, ScaledByte>) {
      const auto low = L::load(t.b_scale), high = L::load(t.b_scale + kCount);
#pragma GCC unroll 4
      for (int64_t p = 0; p < steps; ++p, from += step, to += kWidth) {
        L::store(to, L::mul(load_bytes(from), low));
        L::store(to + kCount, L::mul(load_bytes(from + kCount), high));
      }
    } else {
#pragma GCC unroll 4
      for (int64_t p = 0; p < steps; ++p, from += step, to += kWidth) {
        L::store(to, L::load(from));
        L::store(to + kCount, L::load(from + kCount));
      }
    }
  }

  NarrowColumns<B> narrow_;
  float* to_;
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
