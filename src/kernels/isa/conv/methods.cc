// Which method computes which convolution of floats.

#include <algorithm>
#include <iterator>
#include <limits>
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

ConvShape with_layout(ConvShape shape, bool x_nhwc, bool y_nhwc) {
  shape.x_nhwc = x_nhwc;
  shape.y_nhwc = y_nhwc;
  return shape;
}

double priced(std::string_view method, const ConvWork& work) {
  const auto* const prices =
      std::find_if(std::begin(kPrices), std::end(kPrices), [&](const ConvPrices& p) { return p.method == method; });
  TREADLE_ASSERT(prices != std::end(kPrices));
  const auto counts = work.counts();
  return std::inner_product(counts.begin(), counts.end(), prices->ns.begin(), 0.0);
}

struct Choice {
  const ConvMethod* method = nullptr;  // null: none fits
  double ns = std::numeric_limits<double>::infinity();
};

// Among methods whose sums have this order; the first of equally cheap ones.
Choice cheapest(const ConvShape& shape, ComputeType type, SumOrder order) {
  const ConvGeometry g(shape);
  Choice best;
  for (const ConvMethod* m : kMethods) {
    if (!m->fits(g, type) || m->order(g) != order) continue;
    const double ns = priced(m->name, m->work(g, type));
    if (ns < best.ns) best = {m, ns};
  }
  return best;
}

Choice named(const ConvShape& shape, ComputeType type, std::string_view wanted) {
  const ConvGeometry g(shape);
  const auto fits = [&](const ConvMethod* m) { return m->fits(g, type); };
  const ConvMethod* const found = find_named<ConvMethod>(kMethods, wanted, fits);
  return found == nullptr ? Choice() : Choice{found, priced(found->name, found->work(g, type))};
}

// The method with channels first. Its order of sums is that of all layouts, which give the same bits, and the layout is
// not decided yet: so an order counts by what it takes with channels first and in the better of both layouts.
Choice nchw_method(const ConvShape& given, ComputeType type, std::string_view wanted) {
  const ConvShape plain = with_layout(given, false, false), last = with_layout(given, true, true);
  if (const Choice choice = named(plain, type, wanted); choice.method != nullptr) return choice;
  Choice best;
  double least = best.ns;
  for (const SumOrder order : kSumOrders) {
    const Choice nchw = cheapest(plain, type, order);
    if (nchw.method == nullptr) continue;
    const double ns = nchw.ns + std::min(nchw.ns, cheapest(last, type, order).ns);
    if (ns < least) best = nchw, least = ns;
  }
  return best;
}

// No method: none computes it in these layouts with the bits that `nchw` gives it with channels first.
Choice method_beside(const Choice& nchw, const ConvShape& shape, ComputeType type, std::string_view wanted) {
  if (!shape.x_nhwc && !shape.y_nhwc) return nchw;
  if (const Choice choice = named(shape, type, wanted); choice.method != nullptr) return choice;
  const ConvShape plain = with_layout(shape, false, false);
  return cheapest(shape, type, nchw.method->order(ConvGeometry(plain)));
}

}  // namespace

std::vector<std::string_view> conv_methods() {
  return names_of<ConvMethod>(kMethods);
}

ConvLayouts conv_layouts(ComputeType type, const ConvShape& shape, std::string_view wanted) {
  if (type != ComputeType::kF32) return {};
  const ConvGeometry g(shape);
  if (g.in_channel() == 0 || g.out_channel() == 0 || shape.batch == 0) return {};
  const Choice nchw = nchw_method(shape, type, wanted);
  const auto beside = [&](bool x_nhwc, bool y_nhwc) {
    return method_beside(nchw, with_layout(shape, x_nhwc, y_nhwc), type, wanted);
  };
  const Choice both = beside(true, true), x = beside(true, false), y = beside(false, true);
  const auto takes = [](const Choice& choice) { return choice.method != nullptr; };
  const bool x_nhwc = takes(x) || takes(both), y_nhwc = takes(y) || takes(both);
  return {.x = x_nhwc,
          .y = y_nhwc,
          .apart = x_nhwc == takes(x) && y_nhwc == takes(y),
          .nchw_ns = nchw.ns,
          .x_ns = x.ns,
          .y_ns = y.ns,
          .both_ns = both.ns};
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
  const ConvMethod* const method = method_beside(nchw_method(shape, type, wanted), shape, type, wanted).method;
  TREADLE_ASSERT(method != nullptr);
  plan.method = plan.packing = method->name;
  method->prepare(plan);
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
