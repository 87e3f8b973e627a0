// Convolution with few output positions: each position's elements as a row of A, weights as B in the panels of a GEMV,
// so that lanes hold output channels. Where a position's elements already lie at a constant stride (one input channel,
// one axis, no padding; or 1x1 planes) the rows are read in place.

#include <algorithm>
#include <cstdint>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/gemm_work.h"
#include "kernels/isa/conv/method.h"
#include "kernels/isa/conv/windows.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

struct RowsLayout {
  enum Source { kImages, kOneAxis, kCopied };  // what a row is: an image of 1x1 planes, a window in place, a copy

  RowsLayout(const ConvGeometry& g, int64_t element) {
    const Axis& w = g.width;
    const int64_t positions = g.out_channel();
    const bool windows_inside = w.pad == 0 && (w.out - 1) * w.stride + (w.kernel - 1) * w.dilation < w.in;
    const bool one_axis = g.outer_taps == 1 && g.outer_in == 1 && g.outer_out == 1 && g.height.kernel == 1 &&
                          g.height.in == 1 && g.height.out == 1 && g.height.pad == 0;
    const bool no_outer_pads = g.outer_axes == 0;
    if (one_axis && no_outer_pads && windows_inside && w.in == 1) {
      source = kImages;
    } else if (one_axis && no_outer_pads && windows_inside && g.in_per_group == 1) {
      source = kOneAxis;
    }
    // Copied rows may come from any image; rows in place are those of one image.
    images = source == kOneAxis ? g.shape.batch : 1;
    rows = source == kOneAxis ? positions : g.shape.batch * positions;
    // Copied rows stay in the second-level cache; the most are several of the highest tiles, the fewest more than one.
    chunk = std::clamp<int64_t>((256 << 10) / (std::max<int64_t>(g.k, 1) * element), 16, 64);
    chunk = std::min(chunk, std::max<int64_t>(rows, 1));
    chunks = (rows + chunk - 1) / chunk;
  }

  Source source = kCopied;
  int64_t images, rows;  // rows per image
  int64_t chunk, chunks;
};

template <class T>
GemmPlan rows_gemm(ComputeType type, const ConvGeometry& g, const RowsLayout& layout) {
  GemmShape s;
  s.m = layout.chunk;
  s.n = g.out_per_group;
  s.k = g.k;
  s.a_row = layout.source == RowsLayout::kImages    ? g.shape.in_channels
            : layout.source == RowsLayout::kOneAxis ? g.width.stride
                                                    : g.k;
  s.a_col = layout.source == RowsLayout::kOneAxis ? g.width.dilation : 1;
  s.b_row = 1;
  s.b_col = g.k;
  s.b_packed = true;
  s.c_row = g.out_per_group;
  s.bias_row = 0;
  s.bias_col = 1;
  return TREADLE_ISA_NAMESPACE::prepare_gemm(type, s);
}

template <class T>
void pack_rows(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape);
  const GemmPlan gemm = rows_gemm<T>(plan.type, g, RowsLayout(g, sizeof(T)));
  for (int64_t group = 0; group < plan.shape.groups; ++group) {
    pack_b(gemm, static_cast<const T*>(weights) + group * g.out_per_group * g.k,
           static_cast<std::byte*>(packed) + group * static_cast<int64_t>(gemm.packed_b_bytes), stop);
  }
}

template <class T>
void run_rows(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvShape& s = plan.shape;
  const ConvGeometry g(s);
  const RowsLayout layout(g, sizeof(T));
  const GemmPlan gemm = rows_gemm<T>(plan.type, g, layout);
  const int64_t positions = g.out_channel();
  const T low = static_cast<T>(plan.clamp.low), high = static_cast<T>(plan.clamp.high);
  std::byte* gemm_scratch = static_cast<std::byte*>(operands.scratch);
  T* results = reinterpret_cast<T*>(gemm_scratch + gemm.scratch_bytes);
  T* copies = results + layout.chunk * g.out_per_group;
  StopPoll stop;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t chunk = unit % layout.chunks, group = unit / layout.chunks % s.groups;
    const int64_t image = unit / layout.chunks / s.groups;
    const int64_t first = chunk * layout.chunk, count = std::min(layout.chunk, layout.rows - first);
    const T* x = static_cast<const T*>(operands.x) + group * g.in_per_group * g.in_channel();
    const T* a = x + first * s.in_channels;
    if (layout.source == RowsLayout::kOneAxis) {
      a = x + image * s.in_channels * g.in_channel() + first * g.width.stride;
    } else if (layout.source == RowsLayout::kCopied) {
      for (int64_t r = 0; r < count; ++r) {
        const int64_t row = first + r;
        const T* first_channel = x + row / positions * s.in_channels * g.in_channel();
        if (!im2col_row(g, first_channel, row % positions, T(0), copies + r * g.k, stop)) return;
      }
      a = copies;
    }
    const T* bias = operands.bias == nullptr ? nullptr : static_cast<const T*>(operands.bias) + group * g.out_per_group;
    run_gemm_rows(
        gemm, count, a,
        static_cast<const std::byte*>(operands.packed_weights) + group * static_cast<int64_t>(gemm.packed_b_bytes),
        bias, results, gemm_scratch);
    for (int64_t r = 0; r < count; ++r) {
      const int64_t row = image * layout.rows + first + r;
      T* y = static_cast<T*>(operands.y) + (row / positions * s.out_channels + group * g.out_per_group) * positions +
             row % positions;
      const T* addend = beside(operands, y);
      for (int64_t c = 0; c < g.out_per_group; ++c) {
        T value = results[r * g.out_per_group + c];
        if (addend != nullptr) value += addend[c * positions];
        y[c * positions] = value < low ? low : value > high ? high : value;
      }
    }
  }
}

template <class T>
void prepare_rows(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const RowsLayout layout(g, sizeof(T));
  const GemmPlan gemm = rows_gemm<T>(plan.type, g, layout);
  plan.units = layout.images * plan.shape.groups * layout.chunks;
  plan.packed_weight_bytes = static_cast<size_t>(plan.shape.groups) * gemm.packed_b_bytes;
  plan.scratch_bytes = gemm.scratch_bytes + static_cast<size_t>(layout.chunk * (g.out_per_group + g.k)) * sizeof(T);
  plan.run = run_rows<T>;
  plan.pack = pack_rows<T>;
}

// Copies of windows (windows.h).
void count_windows(const ConvGeometry& g, double rows, ConvWork& work) {
  constexpr int64_t kMostMoved = 16;  // im2col_line
  constexpr double kCopiedTap = 0.3;  // beside a tap that is copied by itself
  const bool one_axis = g.outer_axes == 0 && g.height.in == 1 && g.height.kernel == 1 && g.height.pad == 0;
  const double lines = rows * count(g.k / g.width.kernel), taps = rows * count(g.k);
  if (one_axis && g.width.dilation == 1 && g.width.kernel <= kMostMoved) {
    work.copies += lines;
  } else if (one_axis) {
    work.elements += taps;
  } else if (g.width.dilation == 1) {
    work.begun += 2 * lines;
    work.elements += kCopiedTap * taps;
  } else {
    work.begun += lines;
    work.elements += taps;
  }
}

// Loads are vectors of dot products, and what a chunk of rows takes before the first; copies are channels whose taps
// are moved at once; elements those that are copied one at a time; stores single results; begun tiles, rows of taps and
// rows.
template <class T>
ConvWork work(const ConvGeometry& g) {
  const RowsLayout layout(g, sizeof(T));
  const double rows = count(layout.images * layout.rows * g.shape.groups);
  const double chunks = count(layout.images * layout.chunks * g.shape.groups);
  ConvWork all;
  if (layout.source == RowsLayout::kCopied) count_windows(g, rows, all);
  all.loads += 4 * chunks;
  if (g.out_per_group <= kGemmDotColumns) {
    all.loads += rows * dot_loads<T>(g.out_per_group, g.k);
  } else {
    const GemmWork<T> gemm(parts_of(layout.rows, layout.chunks), g.out_per_group, g.k);
    all.products = chunks * gemm.products;
    all.begun += chunks * gemm.tiles;
    all.elements += chunks * gemm.elements;
    all.weights = weight_reads<T>(chunks, g.k * g.out_per_group);
  }
  all.stores = rows * count(g.out_per_group);
  all.begun += rows;
  return all;
}

// Planes of one element lie alike in both layouts.
bool fits(const ConvGeometry& g, ComputeType type) {
  const bool single = g.in_channel() == 1 && g.out_channel() == 1;
  return !g.shape.transposed && (has_nchw_operands(g) || (single && type == ComputeType::kF32));
}

}  // namespace

constexpr ConvMethod kIm2col = {
    .name = "im2col",
    .fits = fits,
    .work = work_by_type<work<float>, work<double>>,
    .order =
        [](const ConvGeometry& g) { return g.out_per_group > kGemmDotColumns ? SumOrder::kWeights : SumOrder::kDots; },
    .prepare = prepare_by_type<prepare_rows<float>, prepare_rows<double>>,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
