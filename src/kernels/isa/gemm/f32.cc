// Products of floats.

#include "kernels/isa/gemm/prepare.h"
#include "kernels/isa/gemm/types.h"
#include "kernels/isa/gemm/widened.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

template TileFunction<float> own_tile<float>(const TileChoice&);

GemmPlan prepare_f32_gemm(ComputeType type, const GemmShape& shape, std::string_view wanted) {
  GemmPlan plan = prepare<float>(type, shape, wanted);
  if (shape.b_packed && shape.n > kGemmDotColumns) {
    if (shape.b_half) {
      use_half_panels(plan, wanted);
    } else if (shape.b_bytes) {
      use_byte_panels(plan, wanted);
    }
  }
  return plan;
}

std::vector<std::string_view> f32_walks() {
  std::vector<std::string_view> names;
  NarrowProductWalks<float>::add_names(names);
  WalksOf<float>::Table::add_names(names);
  names.push_back(WidenedWalk<Half>::kName);
  return names;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
