// Depthwise convolutions by rows of taps (conv_depthwise_rows.h).

#include "kernels/isa/conv_depthwise_rows.h"

#include "kernels/isa/conv_methods.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

extern template ConvRun depthwise_rows_for<5>(int64_t down, int64_t across);
extern template ConvRun depthwise_rows_for<7>(int64_t down, int64_t across);

void prepare_depthwise_rows(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const int64_t down = g.height.stride, across = g.width.stride;
  plan.units = plan.shape.batch * plan.shape.out_channels;
  plan.packed_weight_bytes = static_cast<size_t>(plan.shape.out_channels * g.taps) * sizeof(float);
  plan.scratch_bytes =
      across == 1 ? DepthwiseRows<3, 1, 1>::scratch_bytes(g) : DepthwiseRows<3, 1, 2>::scratch_bytes(g);
  plan.run = g.height.kernel == 3   ? depthwise_rows_for<3>(down, across)
             : g.height.kernel == 5 ? depthwise_rows_for<5>(down, across)
                                    : depthwise_rows_for<7>(down, across);
  plan.pack = copy_weights;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
