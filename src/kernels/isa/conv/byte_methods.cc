// Which method computes which convolution of bytes.

#include <algorithm>
#include <array>

#include "kernels/isa/conv/byte_method.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// The first that fits and pays is taken.
constexpr const ByteConvMethod* kMethods[] = {
    &kBytePlanes,
#if defined(__AVX2__)
    &kByteDirect,
    &kByteStrips,
#endif
    &kByteIm2col,
};

}  // namespace

QConvPlan prepare_qconv(const QConvShape& shape) {
  const ConvGeometry g(shape.conv);
  const auto takes = [&](const ByteConvMethod* m) { return m->fits(g) && m->pays(g); };
  const ByteConvMethod* const method = *std::find_if(std::begin(kMethods), std::end(kMethods), takes);
  QConvPlan plan;
  plan.shape = shape;
  plan.method = plan.packing = method->name;
  method->prepare(plan);
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
