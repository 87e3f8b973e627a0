// 8-bit convolution: by strips of output positions where tiles multiply bytes (AVX2 and up), else by rows.

#include "kernels/isa/entry.h"
#include "kernels/isa/qconv_rows.h"
#if defined(__AVX2__)
#include "kernels/isa/qconv_strips.h"
#endif

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

QConvPlan prepare_qconv(const QConvShape& shape) {
#if defined(__AVX2__)
  if (ConvGeometry(shape.conv).k <= FittedLayout::kMostSteps) return prepare_strips(shape);
#endif
  return prepare_rows(shape);
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
