// Depthwise convolutions by rows of taps (depthwise_rows.h).

#include "kernels/isa/conv/depthwise_rows.h"

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/method.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

extern template ConvRun depthwise_rows_for<5>(int64_t down, int64_t across);
extern template ConvRun depthwise_rows_for<7>(int64_t down, int64_t across);

namespace {

void prepare_depthwise_rows(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const int64_t down = g.height.stride, across = g.width.stride;
  plan.units = plan.shape.batch * plan.shape.out_channels;
  pack_as_given(plan, plan.shape.out_channels * g.taps, sizeof(float));
  plan.scratch_bytes =
      across == 1 ? DepthwiseRows<3, 1, 1>::scratch_bytes(g) : DepthwiseRows<3, 1, 2>::scratch_bytes(g);
  plan.run = g.height.kernel == 3   ? depthwise_rows_for<3>(down, across)
             : g.height.kernel == 5 ? depthwise_rows_for<5>(down, across)
                                    : depthwise_rows_for<7>(down, across);
}

bool fits(const ConvGeometry& g, ComputeType type) {
  return type == ComputeType::kF32 && is_depthwise_by_rows(g) && has_nchw_operands(g);
}

// Vectors of a row, two at a time, whose taps reach over an edge of the plane.
int64_t vectors_at_edges(const ConvGeometry& g) {
  constexpr int64_t kLanes = Lanes<float>::kCount;
  const int64_t vectors = vectors_of<float>(g.width.out);
  int64_t all = 0;
  for (int64_t v = 0; v < vectors; v += 2) {
    const int64_t together = std::min<int64_t>(2, vectors - v);
    for (int64_t tap = 0; tap < g.width.kernel; ++tap) {
      const int64_t first = g.width.input_at(v * kLanes, tap);
      const bool is_inside = first >= 0 && first + (together * kLanes - 1) * g.width.stride < g.width.in;
      if (!is_inside) all += together;
    }
  }
  return all;
}

// Loads are vectors of the input; copies those that are read under a mask; elements the rows that are found; begun the
// columns of taps.
ConvWork work(const ConvGeometry& g, ComputeType) {
  const double channels = count(g.shape.batch * g.shape.out_channels);
  const int64_t vectors = vectors_of<float>(g.width.out), tall = g.height.kernel, wide = g.width.kernel;
  const int64_t pairs = vectors / 2, single = vectors % 2, edges = vectors_at_edges(g);
  const int64_t read = g.width.stride == 2 ? 3 : 1;  // a vector of every second element: two loads, a shuffle
  ConvWork all;
  for (int64_t row = 0; row < g.height.out;) {
    const int64_t left = g.height.out - row, rows = rows_at_once(tall, vectors, left);
    const int64_t input_rows = (rows - 1) * g.height.stride + tall;
    all.products += channels * (count(pairs) * tile_products(wide, rows, 2 * tall) +
                                count(single) * tile_products(wide, rows, tall));
    all.loads += channels * count(wide * input_rows * vectors * read);
    all.copies += channels * count(input_rows * edges);
    all.elements += channels * count(input_rows);
    all.stores += channels * count(std::min(rows, left) * vectors);
    all.begun += channels * count((pairs + single) * wide);
    row += std::min(rows, left);
  }
  return all;
}

}  // namespace

constexpr ConvMethod kDepthwiseRows = {
    .name = "depthwise-rows",
    .fits = fits,
    .work = work,
    .order = sums_in<SumOrder::kColumns>,
    .prepare = prepare_depthwise_rows,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
