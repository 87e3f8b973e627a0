// Convolutions with channels in the lanes (conv_channels.h).

#include "kernels/isa/conv_channels.h"

#include "kernels/isa/conv_methods.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

#if defined(__AVX2__)

void prepare_channels(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const ChannelsLayout layout(g, kFloatForm);
  plan.units = layout.units();
  plan.packed_weight_bytes = static_cast<size_t>(layout.groups * layout.group_elements()) * sizeof(float);
  plan.scratch_bytes = static_cast<size_t>(layout.sums() + layout.buffer()) * sizeof(float) +
                       static_cast<size_t>(layout.places()) * sizeof(Place);
  plan.run = run_channels;
  plan.pack = plan.shape.transposed ? pack_channels<true> : pack_channels<false>;
}

#endif

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
