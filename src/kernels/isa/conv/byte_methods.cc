// Which method computes which convolution of bytes.

#include "kernels/isa/conv/byte_method.h"
#include "kernels/isa/conv/choice.h"
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

std::vector<std::string_view> byte_conv_methods() {
  return names_of<ByteConvMethod>(kMethods);
}

QConvPlan prepare_qconv(const QConvShape& shape, std::string_view wanted) {
  const ConvGeometry g(shape.conv);
  const auto fits = [&](const ByteConvMethod* m) { return m->fits(g); };
  const ByteConvMethod* method = find_named<ByteConvMethod>(kMethods, wanted, fits);
  if (method == nullptr) {
    method = find_first<ByteConvMethod>(kMethods, [&](const ByteConvMethod* m) { return m->fits(g) && m->pays(g); });
  }
  QConvPlan plan;
  plan.shape = shape;
  plan.method = plan.packing = method->name;
  method->prepare(plan);
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
