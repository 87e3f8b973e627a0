// Products of floats by panels of float16.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/gemm/panels.h"
#include "kernels/isa/gemm/tile_choice.h"
#include "kernels/isa/gemm/types.h"
#include "kernels/isa/gemm/widened.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

extern template TileFunction<float> own_tile<float>(const TileChoice&);

namespace {

// As pack_panels, a block of steps at a time.
void pack_half_panels(const GemmPlan& plan, const void* b, void* packed, StopPoll& stop) {
  constexpr int64_t kSteps = 16;
  const GemmShape& s = plan.shape;
  float block[kSteps * kHalfWidth];
  for (int64_t j = 0; j < s.n; j += kHalfWidth) {
    Half* panel = static_cast<Half*>(packed) + j * s.k;
    const int64_t width = half_panel_width(s, j);
    for (int64_t p = 0; p < s.k; p += kSteps) {
      const int64_t steps = std::min(kSteps, s.k - p);
      if (stop.after(kPackedNs * static_cast<double>(steps * width))) return;
      pack_panel(static_cast<const float*>(b) + p * s.b_row + j * s.b_col, s.b_row, s.b_col, steps,
                 std::min(width, s.n - j), width, block);
      for (int64_t i = 0; i < steps * width; i += Lanes<float>::kCount) {
        Lanes<float>::store(panel + p * width + i, Lanes<float>::load(block + i));
      }
    }
  }
}

}  // namespace

void use_half_panels(GemmPlan& plan, std::string_view wanted) {
  const size_t bytes = plan.packed_b_bytes / sizeof(float) * sizeof(Half);
  use_narrow_panels<Half>(plan, bytes, "half-panels", pack_half_panels, wanted);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
