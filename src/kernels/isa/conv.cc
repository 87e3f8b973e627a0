// Convolution: which method for which shape, and the two short methods (1x1 kernels, transposed).

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/isa/conv_channels.h"
#include "kernels/isa/conv_depthwise.h"
#include "kernels/isa/conv_depthwise_masked.h"
#include "kernels/isa/conv_depthwise_rows.h"
#include "kernels/isa/conv_methods.h"
#include "kernels/isa/conv_rows.h"
#include "kernels/isa/conv_shift.h"
#include "kernels/isa/entry.h"

namespace treadle::kernels::TREADLE_ISA_NAMESPACE {

extern template void prepare_depthwise<float>(ConvPlan&);
extern template void prepare_depthwise<double>(ConvPlan&);
extern template void prepare_rows<float>(ConvPlan&);
extern template void prepare_rows<double>(ConvPlan&);
extern template void prepare_shift<float>(ConvPlan&);
extern template void prepare_shift<double>(ConvPlan&);
#if defined(__AVX512F__)
extern template void prepare_masked<float>(ConvPlan&);
extern template void prepare_masked<double>(ConvPlan&);
#endif

namespace {

// 1x1 kernels: the weights times the input as it lies, [out, in] x [in, positions].
template <class T>
GemmPlan pointwise_gemm(const ConvPlan& plan, const ConvGeometry& g) {
  GemmShape s;
  s.m = g.out_per_group;
  s.n = g.out_channel();
  s.k = g.in_per_group;
  s.a_row = g.in_per_group;
  s.b_row = plan.shape.x_last ? 1 : g.in_channel();
  if (plan.shape.x_last) s.b_col = plan.shape.in_channels;
  s.c_row = g.out_channel();
  s.bias_row = 1;
  s.bias_col = 0;
  s.low = plan.clamp.low;
  s.high = plan.clamp.high;
  return TREADLE_ISA_NAMESPACE::prepare_gemm(plan.type, s);
}

bool is_pointwise(const ConvShape& s) {
  for (int i = 0; i < s.axes; ++i) {
    if (s.kernel[i] != 1 || s.stride[i] != 1 || s.pad_begin[i] != 0 || s.input[i] != s.output[i]) return false;
  }
  return true;
}

// 1x1 kernels that leave out positions, and read none outside of the input.
bool is_strided_pointwise(const ConvGeometry& g) {
  const auto leaves_out = [](const Axis& a) { return a.kernel == 1 && a.pad == 0 && (a.out - 1) * a.stride < a.in; };
  return !g.shape.transposed && g.outer_axes == 0 && leaves_out(g.height) && leaves_out(g.width);
}

// Columns in a unit of work, so that two threads find parts of one size.
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
             group * g.in_per_group * (s.x_last ? 1 : g.in_channel()),
         bias == nullptr ? nullptr : bias + group * g.out_per_group, y, operands.scratch, beside(operands, y)},
        {0, g.out_per_group, column, column + columns});
  }
}

template <class T>
void prepare_pointwise(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const int64_t columns = pointwise_columns<T>(g);
  plan.units = plan.shape.batch * plan.shape.groups * ((g.out_channel() + columns - 1) / columns);
  plan.packed_weight_bytes = static_cast<size_t>(plan.shape.out_channels * g.k) * sizeof(T);
  plan.scratch_bytes = pointwise_gemm<T>(plan, g).scratch_bytes;
  plan.run = run_pointwise<T>;
  plan.pack = copy_weights;
}

// 1x1 kernels with channels last: [positions, in] x [in, out], weights packed.
template <class T>
GemmPlan pointwise_last_gemm(const ConvPlan& plan, const ConvGeometry& g) {
  GemmShape s;
  s.m = g.out_channel();
  s.n = g.out_per_group;
  s.k = g.in_per_group;
  s.a_row = !is_pointwise(plan.shape) ? g.in_per_group : plan.shape.x_last ? plan.shape.in_channels : 1;
  s.a_col = plan.shape.x_last ? 1 : g.in_channel();
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
// cache, and two threads find parts of one size.
template <class T>
struct PointwiseUnits {
  explicit PointwiseUnits(const ConvGeometry& g) : rows(g.out_channel()), columns(g.out_per_group) {
    constexpr int64_t kBytes = 256 << 10, kFewest = 96, kFewestColumns = 128;
    const int64_t most = std::max(kFewest, kBytes / ((g.in_per_group + g.out_per_group) * int64_t{sizeof(T)}));
    if (rows >= 2 * kFewest) {
      const int64_t pairs = (rows + 2 * most - 1) / (2 * most);
      rows = (rows + 2 * pairs - 1) / (2 * pairs);
    } else if (columns >= kFewestColumns) {
      const int64_t panels = (columns + kPanelWidth<T> - 1) / kPanelWidth<T>;
      columns = (panels + 1) / 2 * kPanelWidth<T>;
    }
    row_parts = (g.out_channel() + rows - 1) / rows;
    column_parts = (g.out_per_group + columns - 1) / columns;
  }
  int64_t rows, columns, row_parts, column_parts;
};

// What positions [begin, end) read, one behind the other.
template <class T>
void gather_positions(const ConvGeometry& g, const T* x, int64_t begin, int64_t end, T* to) {
  for (int64_t i = begin; i < end; ++i, to += g.in_per_group) {
    const int64_t row = i / g.width.out * g.height.stride, column = i % g.width.out * g.width.stride;
    std::copy_n(x + (row * g.width.in + column) * g.shape.in_channels, g.in_per_group, to);
  }
}

template <class T>
void run_pointwise_last(const ConvPlan& plan, const ConvOperands& operands, int64_t begin, int64_t end) {
  const ConvShape& s = plan.shape;
  const ConvGeometry g(s);
  const GemmPlan gemm = pointwise_last_gemm<T>(plan, g);
  const PointwiseUnits<T> units(g);
  const bool gathers = !is_pointwise(s);
  T* gathered = reinterpret_cast<T*>(static_cast<std::byte*>(operands.scratch) + gemm.scratch_bytes);
  for (int64_t unit = begin; unit < end; ++unit) {
    const int64_t column = unit % units.column_parts * units.columns;
    const int64_t row = unit / units.column_parts % units.row_parts * units.rows;
    const int64_t rest = unit / units.column_parts / units.row_parts, group = rest % s.groups, image = rest / s.groups;
    const int64_t rows = std::min(units.rows, g.out_channel() - row);
    const T* bias = static_cast<const T*>(operands.bias);
    const T* x = static_cast<const T*>(operands.x) + image * s.in_channels * g.in_channel() +
                 group * g.in_per_group * (s.x_last ? 1 : g.in_channel());
    if (gathers) gather_positions(g, x, row, row + rows, gathered);
    T* y = static_cast<T*>(operands.y) + (image * g.out_channel() + row) * s.out_channels + group * g.out_per_group;
    run_gemm_range(
        gemm,
        {gathers ? gathered : x + row * gemm.shape.a_row,
         static_cast<const std::byte*>(operands.packed_weights) + static_cast<size_t>(group) * gemm.packed_b_bytes,
         bias == nullptr ? nullptr : bias + group * g.out_per_group, y, operands.scratch, beside(operands, y)},
        {0, rows, column, std::min(column + units.columns, g.out_per_group)});
  }
}

template <class T>
void pack_pointwise_last(const ConvPlan& plan, const void* weights, void* packed, StopPoll& stop) {
  const ConvGeometry g(plan.shape);
  const GemmPlan gemm = pointwise_last_gemm<T>(plan, g);
  for (int64_t group = 0; group < plan.shape.groups; ++group) {
    pack_b(gemm, static_cast<const T*>(weights) + group * g.out_per_group * g.k,
           static_cast<std::byte*>(packed) + static_cast<size_t>(group) * gemm.packed_b_bytes, stop);
  }
}

template <class T>
void prepare_pointwise_last(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const GemmPlan gemm = pointwise_last_gemm<T>(plan, g);
  const PointwiseUnits<T> units(g);
  plan.units = plan.shape.batch * plan.shape.groups * units.row_parts * units.column_parts;
  plan.packed_weight_bytes = static_cast<size_t>(plan.shape.groups) * gemm.packed_b_bytes;
  plan.scratch_bytes = gemm.scratch_bytes;
  if (!is_pointwise(plan.shape)) plan.scratch_bytes += static_cast<size_t>(units.rows * g.in_per_group) * sizeof(T);
  plan.run = run_pointwise_last<T>;
  plan.pack = pack_pointwise_last<T>;
}

// Transposed: for some output channels at once, columns[channel, tap, input position] = weights[in, channel, tap]^T
// x[in, input position], then each tap's row is added where it belongs, taps in order.
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
  plan.packed_weight_bytes = static_cast<size_t>(plan.shape.in_channels * g.out_per_group * g.taps) * sizeof(T);
  plan.scratch_bytes = transposed_gemm<T>(plan.type, g).scratch_bytes +
                       static_cast<size_t>(together * g.taps * g.in_channel()) * sizeof(T);
  plan.run = run_transposed<T>;
  plan.pack = copy_weights;
}

// With few positions lanes hold channels; otherwise lanes hold positions. A long stride over one channel reads so
// few of a row's neighbours that splitting into phases would cost more than the product.
template <class T>
bool prefers_rows(const ConvGeometry& g) {
  constexpr int64_t kFewPositions = 8, kLongStride = 8;
  if (g.out_channel() <= kFewPositions) return true;
  return RowsLayout(g, sizeof(T)).source == RowsLayout::kOneAxis && g.width.stride >= kLongStride &&
         g.out_per_group >= Lanes<T>::kCount;
}

enum class Method { kRows, kChannels, kTransposed, kPointwise, kMasked, kDepthwiseRows, kDepthwise, kShift };

template <class T>
Method method_of(const ConvGeometry& g) {
  if (!g.shape.transposed && prefers_rows<T>(g)) return Method::kRows;
#if defined(__AVX2__)
  if (std::is_same_v<T, float> && fills_lanes(g)) return Method::kChannels;
#endif
  if (g.shape.transposed) return Method::kTransposed;
  if (is_pointwise(g.shape)) return Method::kPointwise;
#if defined(__AVX512F__)
  if (is_masked_depthwise(g) && is_narrow(g)) return Method::kMasked;
#endif
  if (std::is_same_v<T, float> && is_depthwise_by_rows(g)) return Method::kDepthwiseRows;
#if defined(__AVX512F__)
  if (is_masked_depthwise(g)) return Method::kMasked;
#endif
  return is_depthwise<T>(g) ? Method::kDepthwise : Method::kShift;
}

template <class T>
void prepare(ConvPlan& plan) {
  const ConvGeometry g(plan.shape);
  const ConvShape& s = plan.shape;
  const Method method = method_of<T>(g);
  const bool last = s.x_last && s.y_last;
  switch (method) {
    case Method::kRows:
      return prepare_rows<T>(plan);
    case Method::kChannels:
#if defined(__AVX2__)
      return last && is_strided_pointwise(g) ? prepare_pointwise_last<T>(plan) : prepare_channels(plan);
#endif
    case Method::kTransposed:
      return prepare_transposed<T>(plan);
    case Method::kPointwise:
      return s.y_last ? prepare_pointwise_last<T>(plan) : prepare_pointwise<T>(plan);
    case Method::kMasked:
#if defined(__AVX512F__)
      return last ? prepare_depthwise_last(plan) : prepare_masked<T>(plan);
#endif
    case Method::kDepthwiseRows:
      return last ? prepare_depthwise_last_rows(plan) : prepare_depthwise_rows(plan);
    case Method::kDepthwise:
      return last ? prepare_depthwise_last(plan) : prepare_depthwise<T>(plan);
    case Method::kShift:
      return last ? prepare_pointwise_last<T>(plan) : prepare_shift<T>(plan);
  }
}

}  // namespace

ConvLayouts conv_layouts(ComputeType type, const ConvShape& shape) {
  if (type != ComputeType::kF32) return {};
  const ConvGeometry g(shape);
  if (g.in_channel() == 0 || g.out_channel() == 0 || shape.batch == 0) return {};
  switch (method_of<float>(g)) {
    case Method::kRows: {
      const bool single = g.in_channel() == 1 && g.out_channel() == 1;  // both layouts are one
      return {single, single, true, true};
    }
    case Method::kChannels:
      return {true, true, true, false};
    case Method::kPointwise:
      return {true, g.out_per_group > kGemmDotColumns, true, true};
    case Method::kMasked:
    case Method::kDepthwiseRows:
    case Method::kDepthwise:
      return {true, true, false, true};
    case Method::kShift: {
      const bool fits = is_strided_pointwise(g) && g.out_per_group > kGemmDotColumns;
      return {fits, fits, false, true};
    }
    default:
      return {};
  }
}

ConvPlan prepare_conv(ComputeType type, const ConvShape& shape) {
  ConvPlan plan;
  plan.shape = shape;
  plan.type = type;
  if (type == ComputeType::kF64) {
    prepare<double>(plan);
  } else {
    prepare<float>(plan);
  }
  return plan;
}

}  // namespace treadle::kernels::TREADLE_ISA_NAMESPACE
