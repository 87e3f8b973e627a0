// Kernels of one tap with channels last: [positions, in] x [in, out], weights packed.

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/gemm_work.h"
#include "kernels/isa/conv/method.h"
#include "kernels/isa/conv/pointwise.h"
#include "kernels/isa/entry.h"
#include "kernels/isa/gemm_pack.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

GemmPlan nhwc_gemm(const ConvPlan& plan, const ConvGeometry& g) {
  GemmShape s;
  s.m = g.out_channel();
  s.n = g.out_per_group;
  s.k = g.in_per_group;
  s.a_row = !is_pointwise(plan.shape) ? g.in_per_group : plan.shape.x_nhwc ? plan.shape.in_channels : 1;
  s.a_col = plan.shape.x_nhwc ? 1 : g.in_channel();
  s.b_row = 1;
  s.b_col = g.in_per_group;
  s.b_packed = true;
  s.c_row = plan.shape.out_channels;
  s.bias_row = 0;
  s.bias_col = 1;
  s.low = plan.clamp.low;
  s.high = plan.clamp.high;
  return TREADLE_ISA_NAMESPACE::prepare_gemm(plan.type, s);
}

// Units of work are some positions by some output channels: what a unit reads and writes stays in the second-level
// cache, and two threads find parts of one size. The fewest rows are eight tiles of the highest, the fewest columns
// four panels.
struct PointwiseUnits {
  explicit PointwiseUnits(const ConvGeometry& g) : rows(g.out_channel()), columns(g.out_per_group) {
    constexpr int64_t kBytes = 256 << 10, kFewest = 96, kFewestColumns = 128;
    const int64_t most = std::max(kFewest, kBytes / ((g.in_per_group + g.out_per_group) * int64_t{sizeof(float)}));
    if (rows >= 2 * kFewest) {
      const int64_t pairs = (rows + 2 * most - 1) / (2 * most);
      rows = (rows + 2 * pairs - 1) / (2 * pairs);
    } else if (columns >= kFewestColumns) {
      const int64_t panels = (columns + kPanelWidth<float> - 1) / kPanelWidth<float>;
      columns = (panels + 1) / 2 * kPanelWidth<float>;
    }
    row_parts = (g.out_channel() + rows - 1) / rows;
    column_parts = (g.out_per_group + columns - 1) / columns;
  }
  int64_t rows, columns, row_parts, column_parts;
};

// What positions [begin, end) read, one behind the other.
void gather_positions(const ConvGeometry& g, const float* x, int64_t begin, int64_t end, float* to) {
  for (int64_t i = begin; i < end; ++i, to += g.in_per_group) {
    const int64_t row = i / g.width.out * g.height.stride, column = i % g.width.out * g.width.stride;
    std::copy_n(x + (row * g.width.in + column) * g.shape.in_channels, g.in_per_group, to);
  }
}

void run_pointwise(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvShape& s = plan.shape;
  const ConvGeometry g(s);
  const GemmPlan gemm = nhwc_gemm(plan, g);
  const PointwiseUnits units(g);
  const bool gathers = !is_pointwise(s);
  float* gathered = reinterpret_cast<float*>(static_cast<std::byte*>(operands.scratch) + gemm.scratch_bytes);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t column = unit % units.column_parts * units.columns;
    const int64_t row = unit / units.column_parts % units.row_parts * units.rows;
    const int64_t rest = unit / units.column_parts / units.row_parts, group = rest % s.groups, image = rest / s.groups;
    const int64_t rows = std::min(units.rows, g.out_channel() - row);
    const float* bias = static_cast<const float*>(operands.bias);
    const float* x = static_cast<const float*>(operands.x) + image * s.in_channels * g.in_channel() +
                     group * g.in_per_group * (s.x_nhwc ? 1 : g.in_channel());
    if (gathers) gather_positions(g, x, row, row + rows, gathered);
    float* y =
        static_cast<float*>(operands.y) + (image * g.out_channel() + row) * s.out_channels + group * g.out_per_group;
    run_gemm_range(
        gemm,
        {gathers ? gathered : x + row * gemm.shape.a_row,
         static_cast<const std::byte*>(operands.packed_weights) + static_cast<size_t>(group) * gemm.packed_b_bytes,
         bias == nullptr ? nullptr : bias + group * g.out_per_group, y, operands.scratch, beside(operands, y)},
        {0, rows, column, std::min(column + units.columns, g.out_per_group)});
  }
}

void pack_pointwise(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape);
  const GemmPlan gemm = nhwc_gemm(plan, g);
  for (int64_t group = 0; group < plan.shape.groups; ++group) {
    pack_b(gemm, static_cast<const float*>(weights) + group * g.out_per_group * g.k,
           static_cast<std::byte*>(packed) + static_cast<size_t>(group) * gemm.packed_b_bytes, stop);
  }
}

void prepare_pointwise(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const GemmPlan gemm = nhwc_gemm(plan, g);
  const PointwiseUnits units(g);
  plan.units = plan.shape.batch * plan.shape.groups * units.row_parts * units.column_parts;
  plan.packed_weight_bytes = static_cast<size_t>(plan.shape.groups) * gemm.packed_b_bytes;
  plan.scratch_bytes = gemm.scratch_bytes;
  if (!is_pointwise(plan.shape)) plan.scratch_bytes += static_cast<size_t>(units.rows * g.in_per_group) * sizeof(float);
  plan.run = run_pointwise;
  plan.pack = pack_pointwise;
}

// Products of fewer columns add up in another order.
bool fits(const ConvGeometry& g, ComputeType type) {
  if (type != ComputeType::kF32 || g.out_per_group <= kGemmDotColumns) return false;
  return (is_pointwise(g.shape) && g.shape.y_nhwc) || (is_strided_pointwise(g) && has_nhwc_operands(g));
}

// Loads are partial sums; copies positions that are gathered; elements units of work.
ConvWork work(const ConvGeometry& g, ComputeType) {
  const PointwiseUnits parts(g);
  const double groups = count(g.shape.batch * g.shape.groups);
  const double units = groups * count(parts.row_parts * parts.column_parts);
  const GemmWork<float> gemm(parts.rows, parts.columns, g.k);
  const int64_t vectors = g.out_channel() * vectors_of<float>(g.out_per_group);
  ConvWork all;
  all.products = units * gemm.products;
  all.loads = groups * count(vectors * (parts_of(g.k, kBlockSteps) - 1));
  if (!is_pointwise(g.shape)) {
    all.copies = groups * count(g.out_channel() * parts.column_parts * (vectors_of<float>(g.k) + 2));
  } else if (!g.shape.x_nhwc) {
    all.copies = groups * count(vectors_of<float>(g.out_channel()) * parts.column_parts * g.k);
  }
  all.weights = weight_reads<float>(groups * count(parts.row_parts), g.k * g.out_per_group);
  all.elements = units * (1 + gemm.elements);
  all.stores = groups * count(vectors);
  all.begun = units * gemm.tiles;
  return all;
}

}  // namespace

constexpr ConvMethod kPointwiseNhwc = {
    .name = "pointwise-nhwc",
    .fits = fits,
    .work = work,
    .order = sums_in<SumOrder::kWeights>,
    .prepare = prepare_pointwise,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
