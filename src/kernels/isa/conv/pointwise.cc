// Kernels of one tap: the weights times the input as it lies, [out, in] x [in, positions].

#include "kernels/isa/conv/pointwise.h"

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/gemm_work.h"
#include "kernels/isa/conv/method.h"
#include "kernels/isa/entry.h"
#include "kernels/isa/gemm/walk.h"
#include "kernels/isa/gemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

template <class T>
GemmPlan pointwise_gemm(const ConvPlan& plan, const ConvGeometry& g) {
  GemmShape s;
  s.m = g.out_per_group;
  s.n = g.out_channel();
  s.k = g.in_per_group;
  s.a_row = g.in_per_group;
  s.b_row = plan.shape.x_nhwc ? 1 : g.in_channel();
  if (plan.shape.x_nhwc) s.b_col = plan.shape.in_channels;
  s.c_row = g.out_channel();
  s.bias_row = 1;
  s.bias_col = 0;
  s.low = plan.clamp.low;
  s.high = plan.clamp.high;
  return TREADLE_ISA_NAMESPACE::prepare_gemm(plan.type, s);
}

// Columns in a unit of work, so that two threads find parts of one size. The most of 256 channels take as many bytes as
// a band (kBandBytes) twice; fewer than two panels of 512 bits would leave tiles unfilled.
template <class T>
int64_t pointwise_columns(const ConvGeometry& g) {
  constexpr int64_t kMost = 512, kFewest = 64, kTogether = kPanelWidth<T>;
  const int64_t pairs = (g.out_channel() + 2 * kMost - 1) / (2 * kMost);
  const int64_t columns = (g.out_channel() + 2 * pairs - 1) / std::max<int64_t>(2 * pairs, 1);
  return std::max(kFewest, (columns + kTogether - 1) / kTogether * kTogether);
}

template <class T>
void run_pointwise(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvShape& s = plan.shape;
  const ConvGeometry g(s);
  const GemmPlan gemm = pointwise_gemm<T>(plan, g);
  const int64_t most = pointwise_columns<T>(g), parts = (g.out_channel() + most - 1) / most;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t column = unit % parts * most, group = unit / parts % s.groups;
    const int64_t image = unit / parts / s.groups;
    const int64_t columns = std::min(most, g.out_channel() - column);
    const T* bias = static_cast<const T*>(operands.bias);
    T* y = static_cast<T*>(operands.y) + (image * s.out_channels + group * g.out_per_group) * g.out_channel();
    run_gemm_range(
        gemm,
        {static_cast<const T*>(operands.packed_weights) + group * g.out_per_group * g.k,
         static_cast<const T*>(operands.x) + image * s.in_channels * g.in_channel() +
             group * g.in_per_group * (s.x_nhwc ? 1 : g.in_channel()),
         bias == nullptr ? nullptr : bias + group * g.out_per_group, y, operands.scratch, beside(operands, y)},
        {0, g.out_per_group, column, column + columns});
  }
}

template <class T>
void prepare_pointwise(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const int64_t columns = pointwise_columns<T>(g);
  plan.units = plan.shape.batch * plan.shape.groups * ((g.out_channel() + columns - 1) / columns);
  pack_as_given(plan, plan.shape.out_channels * g.k, sizeof(T));
  plan.scratch_bytes = pointwise_gemm<T>(plan, g).scratch_bytes;
  plan.run = run_pointwise<T>;
}

// Loads are partial sums and dot products; copies panels of the input; elements units of work.
template <class T>
ConvWork work(const ConvGeometry& g) {
  const double groups = count(g.shape.batch * g.shape.groups);
  const int64_t positions = g.out_channel(), filters = g.out_per_group;
  ConvWork all;
  if (positions <= kGemmDotColumns) {
    all.loads = groups * dot_loads<T>(filters * positions, g.k);
    all.elements = groups * count(positions * g.k);
    all.begun = groups;
    return all;
  }
  const int64_t columns = std::min(pointwise_columns<T>(g), positions), vectors = filters * vectors_of<T>(positions);
  const double units = groups * count(parts_of(positions, columns));
  const GemmWork<T> gemm(filters, columns, g.k);
  all.products = units * gemm.products;
  all.loads = groups * count(vectors * (parts_of(g.k, kBlockSteps) - 1));
  all.weights = weight_reads<T>(units * gemm.panels, filters * g.k);
  if (filters >= kPackRows || g.shape.x_nhwc) all.copies = groups * count(g.k * vectors_of<T>(positions));
  all.elements = units * (1 + gemm.elements);
  all.stores = groups * count(vectors);
  all.begun = units * gemm.tiles;
  return all;
}

}  // namespace

constexpr ConvMethod kPointwise = {
    .name = "pointwise",
    .fits = [](const ConvGeometry& g, ComputeType) { return is_pointwise(g.shape) && !g.shape.y_nhwc; },
    .work = work_by_type<work<float>, work<double>>,
    .order =
        [](const ConvGeometry& g) { return g.out_channel() > kGemmDotColumns ? SumOrder::kWeights : SumOrder::kDots; },
    .prepare = prepare_by_type<prepare_pointwise<float>, prepare_pointwise<double>>,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
