// Which method computes which convolution of floats.

#include <algorithm>
#include <iterator>
#include <numeric>

#include "kernels/isa/conv/choice.h"
#include "kernels/isa/conv/method.h"
#include "kernels/isa/conv/prices.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// The cheapest that fits is taken.
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

double priced(std::string_view method, const ConvWork& work) {
  const auto* const prices =
      std::find_if(std::begin(kPrices), std::end(kPrices), [&](const ConvPrices& p) { return p.method == method; });
  TREADLE_ASSERT(prices != std::end(kPrices));
  const auto counts = work.counts();
  return std::inner_product(counts.begin(), counts.end(), prices->ns.begin(), 0.0);
}

using Choice = Chosen<ConvMethod>;

// `order`: of the sums that are wanted.
Choice cheapest(const ConvShape& shape, ComputeType type, SumOrder order) {
  const ConvGeometry g(shape);
  return choose_cheapest<ConvMethod>(
      kMethods, [&](const ConvMethod* m) { return m->fits(g, type) && m->order(g) == order; },
      [&](const ConvMethod* m) { return priced(m->name, m->work(g, type)); });
}

const ConvMethod* named(const ConvShape& shape, ComputeType type, std::string_view wanted) {
  const ConvGeometry g(shape);
  return find_named<ConvMethod>(kMethods, wanted, [&](const ConvMethod* m) { return m->fits(g, type); });
}

// The method with channels first. Its order of sums is that of all layouts, which give the same bits, and the layout is
// not decided yet: so an order counts by what it takes with channels first and in the better of both layouts.
const ConvMethod* nchw_method(const ConvShape& given, ComputeType type, std::string_view wanted) {
  const ConvShape plain = with_layout(given, false, false), last = with_layout(given, true, true);
  if (const ConvMethod* const method = named(plain, type, wanted)) return method;
  Choice best;
  for (const SumOrder order : kSumOrders) {
    const Choice nchw = cheapest(plain, type, order);
    if (nchw.method == nullptr) continue;
    const double ns = nchw.ns + std::min(nchw.ns, cheapest(last, type, order).ns);
    if (ns < best.ns) best = {nchw.method, ns};
  }
  return best.method;
}

// Null: none computes it in these layouts with the bits that `nchw` gives it with channels first.
const ConvMethod* method_beside(const ConvMethod& nchw, const ConvShape& shape, ComputeType type,
                                std::string_view wanted) {
  if (!shape.x_last && !shape.y_last) return &nchw;
  if (const ConvMethod* const method = named(shape, type, wanted)) return method;
  const ConvShape plain = with_layout(shape, false, false);
  return cheapest(shape, type, nchw.order(ConvGeometry(plain))).method;
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

std::vector<ConvCost> conv_costs(ComputeType type, const ConvShape& shape) {
  const ConvGeometry g(shape);
  std::vector<ConvCost> costs;
  for (const ConvMethod* m : kMethods) {
    if (!m->fits(g, type)) continue;
    const ConvWork work = m->work(g, type);
    costs.push_back({m->name, static_cast<int>(m->order(g)), work.counts(), priced(m->name, work)});
  }
  return costs;
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
