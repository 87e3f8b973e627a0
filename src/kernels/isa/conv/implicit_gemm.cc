// Dense convolutions with channels first, walked in three ways (implicit_gemm.h).

#include "kernels/isa/conv/implicit_gemm.h"

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/implicit_gemm_work.h"
#include "kernels/isa/conv/method.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

extern template void prepare_implicit_gemm<double, ImplicitGemmLayout<double>::kByRow>(ConvPlan&);
extern template void prepare_implicit_gemm<double, ImplicitGemmLayout<double>::kFlat>(ConvPlan&);
extern template void prepare_implicit_gemm<double, ImplicitGemmLayout<double>::kGathered>(ConvPlan&);

namespace {

template <int kWalk>
void prepare(ConvPlan& plan) {
  using F32 = ImplicitGemmLayout<float>;
  using F64 = ImplicitGemmLayout<double>;
  plan.type == ComputeType::kF64 ? prepare_implicit_gemm<double, static_cast<F64::Walk>(kWalk)>(plan)
                                 : prepare_implicit_gemm<float, static_cast<F32::Walk>(kWalk)>(plan);
}

bool fits(const ConvGeometry& g, ComputeType) {
  return !g.shape.transposed && has_nchw_operands(g);
}

// Positions are counted through the rows of a band, which are those of the output.
bool fits_gathered(const ConvGeometry& g, ComputeType type) {
  const auto whole_rows = [&](auto layout) { return layout.column_bands == 1; };
  return fits(g, type) &&
         (type == ComputeType::kF64 ? whole_rows(ImplicitGemmLayout<double>(g, ImplicitGemmLayout<double>::kGathered))
                                    : whole_rows(ImplicitGemmLayout<float>(g, ImplicitGemmLayout<float>::kGathered)));
}

template <int kWalk>
constexpr ConvMethod walk(std::string_view name, bool (*fits)(const ConvGeometry&, ComputeType)) {
  return {.name = name,
          .fits = fits,
          .work = work_by_type<shift_work<float, kWalk>, shift_work<double, kWalk>>,
          .order = sums_in<SumOrder::kWeights>,
          .prepare = prepare<kWalk>};
}

}  // namespace

constexpr ConvMethod kImplicitGemmRows = walk<ImplicitGemmLayout<float>::kByRow>("implicit-gemm-rows", fits);
constexpr ConvMethod kImplicitGemmFlat = walk<ImplicitGemmLayout<float>::kFlat>("implicit-gemm-flat", fits);
constexpr ConvMethod kImplicitGemmGathered =
    walk<ImplicitGemmLayout<float>::kGathered>("implicit-gemm-gathered", fits_gathered);

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
