// 8-bit convolution: of few filters in a group as floats; where tiles multiply bytes (AVX2 and up) with channels in the
// lanes or, if those are few, by strips of output positions; else by rows.

#include "kernels/isa/entry.h"
#include "kernels/isa/qconv_planes.h"
#include "kernels/isa/qconv_rows.h"
#if defined(__AVX2__)
#include "kernels/isa/qconv_channels.h"
#include "kernels/isa/qconv_strips.h"
#endif

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

QConvPlan prepare_qconv(const QConvShape& shape) {
  const bool sums = shape.conv.in_channels > 0;  // of no channels a convolution of floats makes no plane
  if (QConvPlan plan; sums && prepare_planes(shape, &plan)) return plan;
#if defined(__AVX2__)
  if (QConvPlan plan; prepare_byte_channels(shape, &plan)) return plan;
  if (ConvGeometry(shape.conv).k <= FittedLayout::kMostSteps) return prepare_strips(shape);
#endif
  return prepare_rows(shape);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
