// Which method computes which convolution of floats.

#include <algorithm>
#include <array>

#include "kernels/isa/conv/method.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// The first that fits and pays is taken.
constexpr const ConvMethod* kMethods[] = {
    &kIm2col,
    &kPointwiseNhwc,
#if defined(__AVX2__)
    &kDirect,
#endif
    &kCol2im,
    &kPointwise,
#if defined(__AVX512F__)
    &kDepthwiseMasked,
#endif
    &kDepthwiseRows,
    &kDepthwiseNhwcRows,
    &kDepthwise,
    &kDepthwiseNhwc,
    &kImplicitGemmRows,
    &kImplicitGemmFlat,
    &kImplicitGemmGathered,
};

ConvShape with_layout(ConvShape shape, bool x_last, bool y_last) {
  shape.x_last = x_last;
  shape.y_last = y_last;
  return shape;
}

const ConvMethod* method_for(const ConvShape& shape, ComputeType type, std::string_view wanted, const SumOrder* order) {
  const ConvGeometry g(shape);
  const auto fits = [&](const ConvMethod* m) {
    return m->fits(g, type) && (order == nullptr || m->order(g) == *order);
  };
  const auto is_wanted = [&](const ConvMethod* m) { return m->name == wanted && fits(m); };
  const auto takes = [&](const ConvMethod* m) { return fits(m) && m->pays(g, type); };
  const auto* const named = std::find_if(std::begin(kMethods), std::end(kMethods), is_wanted);
  if (named != std::end(kMethods)) return *named;
  const auto* const found = std::find_if(std::begin(kMethods), std::end(kMethods), takes);
  return found == std::end(kMethods) ? nullptr : *found;
}

// Null: none computes it in these layouts with the bits that it has with channels first.
const ConvMethod* method_of(const ConvShape& shape, ComputeType type, std::string_view wanted) {
  const ConvShape plain = with_layout(shape, false, false);
  const ConvMethod* const method = method_for(plain, type, wanted, nullptr);
  if (!shape.x_last && !shape.y_last) return method;
  const SumOrder order = method->order(ConvGeometry(plain));
  return method_for(shape, type, wanted, &order);
}

}  // namespace

std::vector<std::string_view> conv_methods() {
  std::vector<std::string_view> names;
  for (const ConvMethod* m : kMethods) names.push_back(m->name);
  return names;
}

ConvLayouts conv_layouts(ComputeType type, const ConvShape& shape, std::string_view wanted) {
  if (type != ComputeType::kF32) return {};
  const ConvGeometry g(shape);
  if (g.in_channel() == 0 || g.out_channel() == 0 || shape.batch == 0) return {};
  const auto takes = [&](bool x_last, bool y_last) {
    return method_of(with_layout(shape, x_last, y_last), type, wanted) != nullptr;
  };
  const bool both = takes(true, true), x = takes(true, false), y = takes(false, true);
  if (!both && !x && !y) return {};
  return {.x = x || both,
          .y = y || both,
          .apart = x == (x || both) && y == (y || both),
          .in_lanes = !method_of(with_layout(shape, false, false), type, wanted)->transposes};
}

ConvPlan prepare_conv(ComputeType type, const ConvShape& shape, std::string_view wanted) {
  ConvPlan plan;
  plan.shape = shape;
  plan.type = type;
  const ConvMethod* const method = method_of(shape, type, wanted);
  TREADLE_ASSERT(method != nullptr);
  plan.method = plan.packing = method->name;
  method->prepare(plan);
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
