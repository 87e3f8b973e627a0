// Depthwise convolutions over channels that are the last axis (conv_depthwise_last.h).

#include "kernels/isa/conv_depthwise_last.h"

#include "kernels/isa/conv_methods.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

void prepare_depthwise_last(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  plan.units = plan.shape.batch * g.height.out;
  plan.packed_weight_bytes = depthwise_last_weight_bytes(g);
  plan.scratch_bytes = DepthwiseLast::scratch_bytes(g);
  plan.run = run_depthwise_last;
  plan.pack = pack_depthwise_last<false>;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
