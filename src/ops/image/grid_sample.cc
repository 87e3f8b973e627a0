// GridSample: reads an image at positions that the model computes (such as AffineGrid's).

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/rank.h"
#include "ops/costs.h"
#include "ops/image/grid_arithmetic.h"

namespace treadle {
namespace {

using image_ops::reflected;

enum class SampleMode : uint8_t { kNearest, kLinear, kCubic };
enum class Padding : uint8_t { kZeros, kBorder, kReflection };

constexpr int64_t kMaxSpatialRank = 4;

struct SampleOptions {
  SampleMode mode{};
  Padding padding{};
  bool align_corners = false;
};

Result<SampleOptions> sample_options(const ir::Attributes& attributes) {
  SampleOptions o;
  const std::string_view mode = attributes.get_string("mode", "linear");
  if (mode == "nearest") {
    o.mode = SampleMode::kNearest;
  } else if (mode == "linear" || mode == "bilinear") {
    o.mode = SampleMode::kLinear;
  } else if (mode == "cubic" || mode == "bicubic") {
    o.mode = SampleMode::kCubic;
  } else {
    return error(Code::kInvalidModel, "mode is {}, expected nearest, linear or cubic", mode);
  }
  const std::string_view padding = attributes.get_string("padding_mode", "zeros");
  if (padding == "zeros") {
    o.padding = Padding::kZeros;
  } else if (padding == "border") {
    o.padding = Padding::kBorder;
  } else if (padding == "reflection") {
    o.padding = Padding::kReflection;
  } else {
    return error(Code::kInvalidModel, "padding_mode is {}, expected zeros, border or reflection", padding);
  }
  o.align_corners = attributes.get_int("align_corners", 0) != 0;
  return o;
}

Status infer_grid_sample(InferContext& c) {
  TREADLE_TRY(sample_options(c.attributes()).status());
  const Shape *x = c.shape(0), *grid = c.shape(1);
  if (!x || !grid) return c.set_output(0, c.element(0)), Status();
  const Dim expected = static_cast<int64_t>(x->size()) - 2;
  if (x->size() < 3 || grid->size() != x->size() || differ(grid->back(), expected) || differ((*grid)[0], (*x)[0])) {
    return error(
        Code::kInvalidArgument,
        "grid has shape {}, expected rank and batch of X {} and a last axis with a coordinate for each spatial axis",
        to_string(*grid), to_string(*x));
  }
  Shape out{(*x)[0], (*x)[1]};
  for (size_t i = 1; i + 1 < grid->size(); ++i) out.push_back((*grid)[i]);
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

// Elements and weights along one axis for one position.
struct AxisSample {
  int64_t index[4] = {};  // -1: a zero of the padding
  double weight[4] = {};
};

struct SampleAxis {
  int64_t size = 0;
  double low = 0, high = 0;  // the borders
};

int64_t padded_index(Padding padding, const SampleAxis& axis, int64_t i) {
  if (i >= 0 && i < axis.size) return i;
  if (padding == Padding::kZeros) return -1;
  if (padding == Padding::kBorder) return i < 0 ? 0 : axis.size - 1;
  const auto r = static_cast<int64_t>(reflected(static_cast<double>(i), axis.low, axis.high));
  return std::clamp<int64_t>(r, 0, axis.size - 1);
}

void cubic_weights(double t, double* w) {
  w[0] = image_ops::cubic_far(t + 1);
  w[1] = image_ops::cubic_near(t);
  w[2] = image_ops::cubic_near(1 - t);
  w[3] = image_ops::cubic_far(2 - t);
}

// x: position in elements. Returns the number of taps.
int sample_axis(const SampleOptions& o, const SampleAxis& axis, double x, AxisSample* s) {
  const auto size = static_cast<double>(axis.size);
  if (o.mode == SampleMode::kNearest) x = std::nearbyint(x);
  if (!std::isfinite(x)) x = -4;
  if (x < axis.low || x > axis.high) {
    if (o.padding == Padding::kBorder) x = std::clamp(x, 0.0, size - 1);
    if (o.padding == Padding::kReflection) x = reflected(x, axis.low, axis.high);
  }
  x = std::clamp(x, -4.0, size + 4);
  const double base = o.mode == SampleMode::kNearest ? std::trunc(x) : std::floor(x);
  const double t = x - base;
  int taps = 1, before = 0;
  if (o.mode == SampleMode::kNearest) {
    s->weight[0] = 1;
  } else if (o.mode == SampleMode::kLinear) {
    taps = 2;
    s->weight[0] = 1 - t;
    s->weight[1] = t;
  } else {
    taps = 4;
    before = 1;
    cubic_weights(t, s->weight);
  }
  for (int k = 0; k < taps; ++k) s->index[k] = padded_index(o.padding, axis, static_cast<int64_t>(base) - before + k);
  return taps;
}

struct GridState {
  SampleOptions options;
  int64_t batches = 0, channels = 0, points = 0, rank = 0;
  int64_t parts = 1;                      // numbers per element: 2 when complex
  SampleAxis axes[kMaxSpatialRank];       // in the order of the input's axes
  int64_t strides[kMaxSpatialRank] = {};  // of the input, in elements
  int64_t plane = 1;                      // elements of one channel of the input
  size_t width = 0;                       // bytes of an element, for kNearest
  ElementType grid_type{};
  kernels::TileConverter widen, narrow;  // elements, to and from double
  kernels::TileConverter widen_grid;     // to double
  double block_ns = 0;
  uint32_t scratch = 0;
};

// The position along axis d of a grid's number between -1 and 1.
double element_position(const GridState& s, int64_t d, double n) {
  const auto size = static_cast<double>(s.axes[d].size);
  const double x = image_ops::grid_position(n, size, s.options.align_corners);
  return s.grid_type == ElementType::kDouble ? x : static_cast<double>(static_cast<float>(x));
}

// Offsets within a plane (-1: zero) and weights of the elements around a point. Returns their number.
int combine_axes(const GridState& s, const double* position, int64_t* offsets, double* weights) {
  int count = 1;
  offsets[0] = 0;
  weights[0] = 1;
  for (int64_t d = 0; d < s.rank; ++d) {
    AxisSample sample;
    // The grid has the innermost axis first.
    const double x = element_position(s, d, position[s.rank - 1 - d]);
    const int taps = sample_axis(s.options, s.axes[d], x, &sample);
    for (int k = taps; k-- > 0;) {
      for (int i = 0; i < count; ++i) {
        const bool zero = offsets[i] < 0 || sample.index[k] < 0;
        offsets[k * count + i] = zero ? -1 : offsets[i] + sample.index[k] * s.strides[d];
        weights[k * count + i] = weights[i] * sample.weight[k];
      }
    }
    count *= taps;
  }
  return count;
}

constexpr int64_t kTogether = 64;  // points per block

// Blocks of points of one grid each, which are independent units of work.
struct PointBlocks {
  int64_t per_grid, count;
  explicit PointBlocks(const GridState& s)
      : per_grid((s.points + kTogether - 1) / kTogether), count(s.batches * per_grid) {}
};

// Calls fn(batch, first point, positions of the points, points) for all blocks, on several threads.
template <class Fn>
void for_each_block(const GridState& s, const void* grid, Fn&& fn) {
  const PointBlocks blocks(s);
  const size_t width = byte_width(s.grid_type);
  parallel_for(blocks.count, s.block_ns, [&](int64_t begin, int64_t end, int) {
    double positions[kTogether * kMaxSpatialRank];
    for (; begin < end; ++begin) {
      const int64_t b = begin / blocks.per_grid, first = begin % blocks.per_grid * kTogether;
      const int64_t count = std::min(kTogether, s.points - first);
      const auto* from = static_cast<const char*>(grid) + static_cast<size_t>((b * s.points + first) * s.rank) * width;
      kernels::convert(s.widen_grid, from, positions, static_cast<size_t>(count * s.rank));
      fn(b, first, positions, count);
    }
  });
}

// Calls fn(batch, point, offsets, weights, count) for each point of each grid.
template <class Fn>
void for_each_point(const GridState& s, const void* grid, Fn&& fn) {
  for_each_block(s, grid, [&](int64_t b, int64_t first, const double* positions, int64_t points) {
    int64_t offsets[256];
    double weights[256];
    for (int64_t i = 0; i < points; ++i) {
      const int count = combine_axes(s, positions + i * s.rank, offsets, weights);
      fn(b, first + i, offsets, weights, count);
    }
  });
}

uint32_t run_nearest_sample(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GridState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[2]]);
  for_each_point(s, slots[operands[1]], [&](int64_t b, int64_t p, const int64_t* offsets, const double*, int) {
    for (int64_t c = b * s.channels; c < (b + 1) * s.channels; ++c) {
      char* to = out + static_cast<size_t>(c * s.points + p) * s.width;
      if (offsets[0] < 0) {
        std::memset(to, 0, s.width);
      } else {
        std::memcpy(to, in + static_cast<size_t>(c * s.plane + offsets[0]) * s.width, s.width);
      }
    }
  });
  return 0;
}

uint32_t run_grid_sample(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GridState*>(state);
  auto* in = static_cast<double*>(slots[operands[s.scratch]]);
  const auto inputs = static_cast<size_t>(s.batches * s.channels * s.plane * s.parts);
  const auto outputs = static_cast<size_t>(s.batches * s.channels * s.points * s.parts);
  double* out = in + inputs;
  parallel_convert(s.widen, slots[operands[0]], in, inputs);
  for_each_point(s, slots[operands[1]],
                 [&](int64_t b, int64_t p, const int64_t* offsets, const double* weights, int count) {
                   for (int64_t c = b * s.channels; c < (b + 1) * s.channels; ++c) {
                     for (int64_t part = 0; part < s.parts; ++part) {
                       double sum = 0;
                       for (int k = 0; k < count; ++k) {
                         if (offsets[k] < 0) continue;
                         sum += weights[k] * in[(c * s.plane + offsets[k]) * s.parts + part];
                       }
                       out[(c * s.points + p) * s.parts + part] = sum;
                     }
                   }
                 });
  parallel_convert(s.narrow, out, slots[operands[2]], outputs);
  return 0;
}

// The two elements around a position along one axis. With zero padding, elements outside have weight 0.
struct LinearAxis {
  int64_t index[2];
  double weight[2];
};

LinearAxis linear_axis(const GridState& s, int64_t d, double position) {
  const SampleAxis& axis = s.axes[d];
  const double x = element_position(s, d, position);
  if (x >= 0 && x < static_cast<double>(axis.size - 1)) {
    const auto base = static_cast<int64_t>(x);
    const double t = x - static_cast<double>(base);
    return {{base, base + 1}, {1 - t, t}};
  }
  AxisSample sample;
  sample_axis(s.options, axis, x, &sample);
  return {{sample.index[0], sample.index[1]}, {sample.weight[0], sample.weight[1]}};
}

// The elements of a plane around a point; fewer if some are outside.
struct LinearPoint {
  int64_t offsets[4];
  double weights[4];
  int count = 0;

  LinearPoint() = default;
  LinearPoint(const GridState& s, const double* position) {
    const LinearAxis x = linear_axis(s, s.rank - 1, position[0]);
    LinearAxis y{{0, -1}, {1, 0}};
    if (s.rank == 2) y = linear_axis(s, 0, position[1]);
    for (int i = 0; i < 2; ++i) {
      if (y.index[i] < 0) continue;
      for (int k = 0; k < 2; ++k) {
        if (x.index[k] < 0) continue;
        offsets[count] = y.index[i] * s.strides[0] * (s.rank - 1) + x.index[k];
        weights[count++] = y.weight[i] * x.weight[k];
      }
    }
  }

  template <class T>
  T sample(const T* in) const {
    const auto term = [&](int k) { return weights[k] * static_cast<double>(in[offsets[k]]); };
    if (count == 4) return static_cast<T>(term(0) + term(1) + term(2) + term(3));
    double sum = 0;
    for (int k = 0; k < count; ++k) sum += term(k);
    return static_cast<T>(sum);
  }
};

// One or two axes, for elements of type T. Locates a block of points, then samples each channel at all of them.
template <class T>
uint32_t run_linear_sample(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GridState*>(state);
  for_each_block(s, slots[operands[1]], [&](int64_t b, int64_t first, const double* positions, int64_t count) {
    LinearPoint points[kTogether];
    for (int64_t i = 0; i < count; ++i) points[i] = LinearPoint(s, positions + i * s.rank);
    for (int64_t c = b * s.channels; c < (b + 1) * s.channels; ++c) {
      const T* in = static_cast<const T*>(slots[operands[0]]) + c * s.plane;
      T* out = static_cast<T*>(slots[operands[2]]) + c * s.points + first;
      for (int64_t i = 0; i < count; ++i) out[i] = points[i].sample(in);
    }
  });
  return 0;
}

double block_ns(const GridState& s) {
  const double per_axis = s.options.mode == SampleMode::kCubic ? 4 : s.options.mode == SampleMode::kLinear ? 2 : 1;
  const double taps = std::pow(per_axis, static_cast<double>(s.rank));
  return static_cast<double>(kTogether) *
         (costs::kGridSampleLocateNs + costs::kGridSampleTapNs * taps * static_cast<double>(s.channels));
}

Status prepare_grid_sample(PrepareContext& c) {
  const Operand &x = c.inputs[0], &out = c.outputs[0];
  auto* s = c.make_state<GridState>();
  TREADLE_ASSIGN(s->options, sample_options(c.attributes()));
  s->rank = x.rank() - 2;
  if (s->rank > kMaxSpatialRank) {
    return error(Code::kLimit, "{} spatial axes are more than the {} of this operator", s->rank, kMaxSpatialRank);
  }
  if (c.inputs[1].dims[0] != x.dims[0]) {
    return error(Code::kInvalidArgument, "grid has {} entries, expected one for each entry of X: {}",
                 c.inputs[1].dims[0], x.dims[0]);
  }
  s->batches = x.dims[0];
  s->channels = x.dims[1];
  s->points = element_count_unchecked(out.dims.span().subspan(2));
  for (int64_t d = 0; d < s->rank; ++d) {
    const int64_t size = x.dims[static_cast<size_t>(d) + 2];
    if (size == 0 && out.element_count() > 0)
      return error(Code::kInvalidArgument, "X has shape {}, expected at least one element along each spatial axis",
                   to_string(x.dims));
    const bool align = s->options.align_corners;
    s->axes[d] = {size, align ? 0 : -0.5, static_cast<double>(size) - (align ? 1.0 : 0.5)};
    s->strides[d] = x.strides[static_cast<size_t>(d) + 2];
    s->plane *= size;
  }
  s->grid_type = c.inputs[1].type;
  s->widen_grid = kernels::make_converter(s->grid_type, ElementType::kDouble);
  s->block_ns = block_ns(*s);
  c.cost_ns = s->block_ns * static_cast<double>(PointBlocks(*s).count);
  s->width = byte_width(x.type);
  if (s->options.mode == SampleMode::kNearest) return c.set_kernel(run_nearest_sample, s), Status();
  if (s->options.mode == SampleMode::kLinear && s->rank <= 2) {
    if (x.type == ElementType::kFloat) return c.set_kernel(run_linear_sample<float>, s), Status();
    if (x.type == ElementType::kDouble) return c.set_kernel(run_linear_sample<double>, s), Status();
  }
  const bool is_complex = compute_type(x.type) == ComputeType::kNone;
  s->parts = is_complex ? 2 : 1;
  const ElementType complex_part = x.type == ElementType::kComplex64 ? ElementType::kFloat : ElementType::kDouble;
  s->widen = kernels::make_converter(is_complex ? complex_part : x.type, ElementType::kDouble);
  s->narrow = kernels::make_converter(ElementType::kDouble, is_complex ? complex_part : x.type);
  s->scratch = c.scratch_operand();
  c.scratch_bytes = static_cast<size_t>((x.element_count() + out.element_count()) * s->parts) * sizeof(double);
  c.set_kernel(run_grid_sample, s);
  return {};
}

// Strings can be copied, not interpolated.
Status compute_grid_sample(ComputeContext& c) {
  TREADLE_ASSIGN(const SampleOptions options, sample_options(c.attributes()));
  if (options.mode != SampleMode::kNearest)
    return error(Code::kInvalidArgument, "strings cannot be interpolated, expected mode nearest");
  return compute_by_position(c);
}

// Batch entries of both, channels of the image, and positions of the grid are independent.
Status sampled_axes(AxisContext& c) {
  if (c.runs_along(0) && c.runs_along(1)) return axes::entries_of<0b11>(c);
  if (c.runs_along(0) && c.in(0) == 1) return c.give(0, 1);
  if (c.runs_along(1) && c.in(1) > 0 && c.in(1) < c.rank(1) - 1) return c.give(0, c.in(1) + 1);
  return looks_along("it samples along it");
}

}  // namespace
}  // namespace treadle

TREADLE_OP(GridSample, "") {
  op.since(16)
      .in("X", "T1")
      .in("grid", "T2")
      .out("Y", "T1")
      .attr("align_corners", 0)
      .attr("mode", "bilinear")
      .attr("padding_mode", "zeros")
      .type("T1", types::kAllTensors)
      .type("T2", types::kFloats);
  op.since(20).attr("mode", "linear");
  op.since(22).type("T1", types::kAllTensorsIr4).type("T2", types::kFloatsBf16);
  op.infer(infer_grid_sample).prepare(prepare_grid_sample).compute(compute_grid_sample).axes(sampled_axes);
}
