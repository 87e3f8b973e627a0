// Depthwise convolutions over channels that are the last axis, rows of taps at a time (conv_depthwise_last_rows.h).

#include "kernels/isa/conv_depthwise_last_rows.h"

#include "kernels/isa/conv_methods.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

void prepare_depthwise_last_rows(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  plan.units = DepthwiseLastRows<3, 1>::units(g);
  plan.packed_weight_bytes = depthwise_last_weight_bytes(g);
  plan.pack = pack_depthwise_last<true>;
  switch (g.height.kernel) {
    case 3:
      return prepare_depthwise_last_rows_of<3>(plan, g);
    case 5:
      return prepare_depthwise_last_rows_of<5>(plan, g);
    default:
      return prepare_depthwise_last_rows_of<7>(plan, g);
  }
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
