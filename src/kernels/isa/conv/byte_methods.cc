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

std::vector<std::string_view> byte_conv_methods() {
  std::vector<std::string_view> names;
  for (const ByteConvMethod* m : kMethods) names.push_back(m->name);
  return names;
}

QConvPlan prepare_qconv(const QConvShape& shape, std::string_view wanted) {
  const ConvGeometry g(shape.conv);
  const auto is_wanted = [&](const ByteConvMethod* m) { return m->name == wanted && m->fits(g); };
  const auto takes = [&](const ByteConvMethod* m) { return m->fits(g) && m->pays(g); };
  const auto* found = std::find_if(std::begin(kMethods), std::end(kMethods), is_wanted);
  if (found == std::end(kMethods)) found = std::find_if(std::begin(kMethods), std::end(kMethods), takes);
  const ByteConvMethod* const method = *found;
  QConvPlan plan;
  plan.shape = shape;
  plan.method = plan.packing = method->name;
  method->prepare(plan);
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
