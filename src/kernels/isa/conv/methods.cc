// Which method computes which convolution of floats.

#include "kernels/isa/conv/choice.h"
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
  return choose<ConvMethod>(kMethods, wanted, fits, [&](const ConvMethod* m) { return m->pays(g, type); });
}

const ConvMethod* nchw_method(const ConvShape& shape, ComputeType type, std::string_view wanted) {
  return method_for(with_layout(shape, false, false), type, wanted, nullptr);
}

// Null: none computes it in these layouts with the bits that `nchw` gives it with channels first.
const ConvMethod* method_beside(const ConvMethod& nchw, const ConvShape& shape, ComputeType type,
                                std::string_view wanted) {
  if (!shape.x_last && !shape.y_last) return &nchw;
  const ConvShape plain = with_layout(shape, false, false);
  const SumOrder order = nchw.order(ConvGeometry(plain));
  return method_for(shape, type, wanted, &order);
}

}  // namespace

std::vector<std::string_view> conv_methods() {
  return names_of<ConvMethod>(kMethods);
}

ConvLayouts conv_layouts(ComputeType type, const ConvShape& shape, std::string_view wanted) {
  if (type != ComputeType::kF32) return {};
  const ConvGeometry g(shape);
  if (g.in_channel() == 0 || g.out_channel() == 0 || shape.batch == 0) return {};
  const ConvMethod& nchw = *nchw_method(shape, type, wanted);
  const auto takes = [&](bool x_last, bool y_last) {
    return method_beside(nchw, with_layout(shape, x_last, y_last), type, wanted) != nullptr;
  };
  const bool both = takes(true, true), x = takes(true, false), y = takes(false, true);
  if (!both && !x && !y) return {};
  return {.x = x || both, .y = y || both, .apart = x == (x || both) && y == (y || both), .in_lanes = !nchw.transposes};
}

ConvPlan prepare_conv(ComputeType type, const ConvShape& shape, std::string_view wanted) {
  ConvPlan plan;
  plan.shape = shape;
  plan.type = type;
  const ConvMethod* const method = method_beside(*nchw_method(shape, type, wanted), shape, type, wanted);
  TREADLE_ASSERT(method != nullptr);
  plan.method = plan.packing = method->name;
  method->prepare(plan);
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
