// Depthwise convolutions by rows of taps (depthwise_rows.h).

#include "kernels/isa/conv/depthwise_rows.h"

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/method.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

extern template ConvRun depthwise_rows_for<5>(int64_t down, int64_t across);
extern template ConvRun depthwise_rows_for<7>(int64_t down, int64_t across);

namespace {

void prepare_depthwise_rows(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const int64_t down = g.height.stride, across = g.width.stride;
  plan.units = plan.shape.batch * plan.shape.out_channels;
  pack_as_given(plan, plan.shape.out_channels * g.taps, sizeof(float));
  plan.scratch_bytes =
      across == 1 ? DepthwiseRows<3, 1, 1>::scratch_bytes(g) : DepthwiseRows<3, 1, 2>::scratch_bytes(g);
  plan.run = g.height.kernel == 3   ? depthwise_rows_for<3>(down, across)
             : g.height.kernel == 5 ? depthwise_rows_for<5>(down, across)
                                    : depthwise_rows_for<7>(down, across);
}

bool fits(const ConvGeometry& g, ComputeType type) {
  return type == ComputeType::kF32 && is_depthwise_by_rows(g) && has_nchw_operands(g);
}

}  // namespace

constexpr ConvMethod kDepthwiseRows = {
    .name = "depthwise-rows",
    .fits = fits,
    .pays = always,
    .order = sums_in<SumOrder::kColumns>,
    .transposes = false,
    .prepare = prepare_depthwise_rows,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
