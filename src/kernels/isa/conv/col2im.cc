// Transposed convolution: for some output channels at once, columns[channel, tap, input position] = weights[in,
// channel, tap]^T x[in, input position], then each tap's row is added where it belongs, taps in order.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/isa/conv/epilogue.h"
#include "kernels/isa/conv/gemm_work.h"
#include "kernels/isa/conv/method.h"
#include "kernels/isa/entry.h"
#include "kernels/isa/gemm_tile.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

namespace {

// Output channels at once. Their products stay in the second-level cache until they are added, and fill eight of the
// highest tiles.
template <class T>
int64_t transposed_channels(const ConvGeometry& g) {
  constexpr int64_t kProductBytes = 256 << 10, kMostRows = 8 * kMaxRows<T>;
  const int64_t bytes = std::max<int64_t>(g.taps * g.in_channel() * int64_t{sizeof(T)}, 1);
  return std::clamp<int64_t>(std::min(kProductBytes / bytes, kMostRows / std::max<int64_t>(g.taps, 1)), 1,
                             std::max<int64_t>(g.out_per_group, 1));
}

template <class T>
GemmPlan transposed_gemm(ComputeType type, const ConvGeometry& g) {
  GemmShape s;
  s.m = transposed_channels<T>(g) * g.taps;
  s.n = g.in_channel();
  s.k = g.in_per_group;
  s.a_row = 1;
  s.a_col = g.out_per_group * g.taps;
  s.b_row = g.in_channel();
  s.c_row = g.in_channel();
  return TREADLE_ISA_NAMESPACE::prepare_gemm(type, s);
}

// to[2 * i] += first[i] and to[2 * i + 1] += second[i], for i in [begin, end).
template <class T>
void add_pairs(const T* first, const T* second, int64_t begin, int64_t end, T* to) {
#if defined(__AVX2__)
  if constexpr (std::is_same_v<T, float>) {
    using L = Lanes<float>;
    for (; begin + L::kCount <= end; begin += L::kCount) {
      add_zipped(L::load(first + begin), L::load(second + begin), to + 2 * begin);
    }
  }
#endif
  for (; begin < end; ++begin) {
    to[2 * begin] += first[begin];
    to[2 * begin + 1] += second[begin];
  }
}

// Adds the products of one inner tap (ky, kx), or of that and the one behind it, of one input plane to one output
// plane. Two taps are for a stride of 2: what they make fills rows without a gap.
template <class T>
void add_taps(const ConvGeometry& g, int64_t ky, int64_t kx, int64_t taps, const T* products, T* y) {
  const Axis& h = g.height;
  const Axis& w = g.width;
  const int64_t first_x = kx * w.dilation - w.pad;
  const auto [begin, end] = inside(first_x, w.stride, w.out, w.in);
  const auto next = taps == 2 ? inside(first_x + 1, w.stride, w.out, w.in) : Interval{begin, end};
  const int64_t both_begin = std::max(begin, next.begin), both_end = std::max(both_begin, std::min(end, next.end));
  for (int64_t row = 0; row < h.in; ++row) {
    const int64_t at_y = h.input_at(row, ky);
    if (at_y < 0 || at_y >= h.out) continue;
    T* to = y + at_y * w.out + first_x;
    const T* from = products + row * w.in;
    if (taps == 2) {
      const T* second = from + g.in_channel();
      for (int64_t i = begin; i < std::min(both_begin, end); ++i) to[2 * i] += from[i];
      for (int64_t i = next.begin; i < std::min(both_begin, next.end); ++i) to[2 * i + 1] += second[i];
      add_pairs(from, second, both_begin, both_end, to);
      for (int64_t i = both_end; i < end; ++i) to[2 * i] += from[i];
      for (int64_t i = both_end; i < next.end; ++i) to[2 * i + 1] += second[i];
    } else if (w.stride == 1) {
      for (int64_t i = begin; i < end; ++i) to[i] += from[i];
    } else {
      for (int64_t i = begin; i < end; ++i) to[i * w.stride] += from[i];
    }
  }
}

// The same walk over outer axes as ConvGeometry::outer_plane, from input position to output plane.
int64_t transposed_outer_plane(const ConvShape& s, int outer_axes, int64_t position, int64_t tap) {
  int64_t plane = 0, scale = 1;
  for (int i = outer_axes - 1; i >= 0; --i) {
    const int64_t at = position % s.input[i] * s.stride[i] + tap % s.kernel[i] * s.dilation[i] - s.pad_begin[i];
    if (at < 0 || at >= s.output[i]) return -1;
    plane += at * scale;
    scale *= s.output[i];
    position /= s.input[i];
    tap /= s.kernel[i];
  }
  return plane;
}

// One output channel from its taps' rows of products.
template <class T>
void scatter(const ConvPlan& plan, const ConvGeometry& g, const T* products, T bias, const T* addend, T* y,
             StopPoll& stop) {
  std::fill_n(y, g.out_channel(), bias);
  const bool in_pairs = g.width.stride == 2 && g.width.dilation == 1;
  for (int64_t outer = 0; outer < g.outer_taps; ++outer) {
    for (int64_t ky = 0; ky < g.height.kernel; ++ky) {
      if (stop.after(kPackedNs * static_cast<double>(g.width.kernel * g.in_channel()))) return;
      for (int64_t kx = 0; kx < g.width.kernel;) {
        const int64_t taps = in_pairs && kx + 2 <= g.width.kernel ? 2 : 1;
        for (int64_t position = 0; position < g.outer_in; ++position) {
          const int64_t plane = transposed_outer_plane(plan.shape, g.outer_axes, position, outer);
          if (plane >= 0) add_taps(g, ky, kx, taps, products + position * g.in_plane, y + plane * g.out_plane);
        }
        products += taps * g.in_channel();
        kx += taps;
      }
    }
  }
  finish_range(plan.clamp, addend, y, 1, 0, g.out_channel());
}

template <class T>
void run_transposed(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvShape& s = plan.shape;
  const ConvGeometry g(s);
  const GemmPlan gemm = transposed_gemm<T>(plan.type, g);
  T* products = reinterpret_cast<T*>(static_cast<std::byte*>(operands.scratch) + gemm.scratch_bytes);
  const int64_t together = transposed_channels<T>(g), parts = (g.out_per_group + together - 1) / together;
  StopPoll stop;
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t first = unit % parts * together, group = unit / parts % s.groups, image = unit / parts / s.groups;
    const int64_t count = std::min(together, g.out_per_group - first);
    run_gemm_range(
        gemm,
        {static_cast<const T*>(operands.packed_weights) + (group * g.in_per_group * g.out_per_group + first) * g.taps,
         static_cast<const T*>(operands.x) + (image * s.in_channels + group * g.in_per_group) * g.in_channel(), nullptr,
         products, operands.scratch, nullptr},
        {0, count * g.taps, 0, g.in_channel()});
    for (int64_t i = 0; i < count; ++i) {
      const int64_t channel = group * g.out_per_group + first + i;
      T* y = static_cast<T*>(operands.y) + (image * s.out_channels + channel) * g.out_channel();
      scatter(plan, g, products + i * g.taps * g.in_channel(),
              operands.bias == nullptr ? T(0) : static_cast<const T*>(operands.bias)[channel], beside(operands, y), y,
              stop);
    }
  }
}

template <class T>
void prepare_transposed(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const int64_t together = transposed_channels<T>(g);
  plan.units = plan.shape.batch * plan.shape.groups * ((g.out_per_group + together - 1) / together);
  pack_as_given(plan, plan.shape.in_channels * g.out_per_group * g.taps, sizeof(T));
  plan.scratch_bytes = transposed_gemm<T>(plan.type, g).scratch_bytes +
                       static_cast<size_t>(together * g.taps * g.in_channel()) * sizeof(T);
  plan.run = run_transposed<T>;
}

// Loads are rows of taps that are added; copies panels of the input and of weights; elements products that are added
// one at a time; begun tiles.
template <class T>
ConvWork work(const ConvGeometry& g) {
  const int64_t together = transposed_channels<T>(g), parts = parts_of(g.out_per_group, together);
  const int64_t rows = parts_of(g.out_per_group, parts) * g.taps, columns = g.in_channel();
  const double groups = count(g.shape.batch * g.shape.groups), units = groups * count(parts);
  const GemmWork<T> gemm(rows, columns, g.k / g.taps);
  ConvWork all;
  all.products = units * gemm.products;
  all.copies = units * count(g.in_per_group * (vectors_of<T>(columns) + vectors_of<T>(rows)));
  all.begun = units * gemm.tiles;
  all.elements = units * gemm.elements;
  const Axis& w = g.width;
  const bool in_pairs = w.stride == 2 && w.dilation == 1;
  const double channels = groups * count(g.out_per_group);
  const double taps = channels * count(g.taps * g.outer_in * g.height.in);  // rows of one tap
  all.loads = in_pairs ? taps / 2 : taps;
  all.stores = channels * count(vectors_of<T>(g.out_channel()));
  if (w.stride == 1) {
    all.stores += taps * count(vectors_of<T>(w.in));
  } else if (in_pairs) {
    all.stores += 1.5 * taps * count(vectors_of<T>(w.in));
  } else {
    all.elements += taps * count(w.in);
  }
  return all;
}

}  // namespace

constexpr ConvMethod kCol2im = {
    .name = "col2im",
    .fits = [](const ConvGeometry& g, ComputeType) { return g.shape.transposed && has_nchw_operands(g); },
    .work = work_by_type<work<float>, work<double>>,
    .order = sums_in<SumOrder::kOutputs>,
    .prepare = prepare_by_type<prepare_transposed<float>, prepare_transposed<double>>,
};

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
