// Resize and Upsample: separable, one axis after the other. Nearest neighbours are copied, whatever their type; else
// elements are converted to float or double, combined and converted back.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/convert.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "op/pieces.h"
#include "op/small_contents.h"
#include "ops/image/resample.h"
#include "ops/image/resample_pass.h"
#include "type/dim_fractions.h"

namespace treadle {
namespace {

using image_ops::AxisScale;
using image_ops::AxisTaps;
using image_ops::make_taps;
using image_ops::ResizeMode;
using image_ops::ResizeOptions;

using Numbers = InlineVector<double, 8>;

bool is_upsample(const ir::NodeInfo& node) {
  return node.op->name == "Upsample";
}

// Where a version keeps its inputs; 0: it has none such.
struct InputPlaces {
  size_t roi = 0, scales = 0, sizes = 0;
};

InputPlaces input_places(const ir::NodeInfo& node, int version) {
  if (is_upsample(node)) return {0, version >= 9 ? size_t{1} : 0, 0};
  return version < 11 ? InputPlaces{0, 1, 0} : InputPlaces{1, 2, 3};
}

Numbers numbers_of(const Tensor& t) {
  Numbers numbers;
  for (int64_t i = 0; i < t.element_count(); ++i) numbers.push_back(t.double_at(i));
  return numbers;
}

// Scales of Upsample before version 9.
Numbers scales_of_attributes(const ir::Attributes& attributes, int version, size_t rank) {
  Numbers scales;
  if (version < 7) {
    scales.resize(rank, 1.0);
    if (rank >= 2) {
      scales[rank - 2] = attributes.get_float("height_scale", 1);
      scales[rank - 1] = attributes.get_float("width_scale", 1);
    }
  } else {
    for (float s : attributes.get_floats("scales")) scales.push_back(s);
  }
  return scales;
}

Result<Ints> resized_axes(const ir::Attributes& attributes, size_t rank) {
  if (const ir::Attribute* axes = attributes.find("axes")) {
    return normalize_axes(axes->as_ints(), static_cast<int64_t>(rank));
  }
  Ints all;
  for (size_t i = 0; i < rank; ++i) all.push_back(static_cast<int64_t>(i));
  return all;
}

Status check_list(std::string_view what, size_t found, size_t expected) {
  if (found == expected) return {};
  return error(Code::kInvalidArgument, "{} has {} elements, expected {}", what, found, expected);
}

Result<Dim> scaled(const Dim& size, double scale) {
  if (!(scale > 0) || !std::isfinite(scale)) {
    return error(Code::kInvalidArgument, "a scale is {}, expected above 0", scale);
  }
  if (!size.is_known()) {
    if (scale == std::floor(scale) && scale < 1e9) return size * Dim(static_cast<int64_t>(scale));
    const double part = 1 / scale;  // halves, quarters, ... are exact in every precision
    const bool halves = part == std::floor(part) && part < 1e9 && std::ldexp(0.5, std::ilogb(part) + 1) == part;
    return halves ? floor_div(size, Dim(static_cast<int64_t>(part))) : Dim();
  }
  // In single precision the scale's own rounding disappears (0.7f times 10 is 7), as long as a float holds the size.
  constexpr int64_t kExactInFloat = int64_t{1} << 24;
  const double product =
      size.value() <= kExactInFloat
          ? static_cast<double>(std::floor(static_cast<float>(size.value()) * static_cast<float>(scale)))
          : std::floor(static_cast<double>(size.value()) * scale);
  if (product > 1e15) return error(Code::kLimit, "size {} times {} is too large", size.value(), scale);
  return Dim(static_cast<int64_t>(product));
}

// The common scale of keep_aspect_ratio_policy; 0 for "stretch".
Result<double> common_scale(const ir::Attributes& attributes, std::span<const int64_t> sizes, const Dims& dims,
                            const Ints& axes) {
  const std::string_view policy = attributes.get_string("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return 0.0;
  const bool smallest = policy == "not_larger";
  double scale = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const double s = static_cast<double>(sizes[i]) / static_cast<double>(dims[static_cast<size_t>(axes[i])]);
    scale = i == 0 ? s : smallest ? std::min(scale, s) : std::max(scale, s);
  }
  return scale;
}

// --- Inference

Status infer_by_scales(InferContext& c, const Shape& shape, const Ints& axes, const Numbers& scales) {
  TREADLE_TRY(check_list("scales", scales.size(), axes.size()));
  Shape out = shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (is_upsample(c.node) && !(scales[i] >= 1)) {
      return error(Code::kInvalidArgument, "a scale is {}, expected at least 1 (Resize takes smaller ones)", scales[i]);
    }
    Dim& size = out[static_cast<size_t>(axes[i])];
    TREADLE_ASSIGN(size, scaled(size, scales[i]));
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

Status infer_by_sizes(InferContext& c, const Shape& shape, const Ints& axes, const Shape& sizes) {
  TREADLE_TRY(check_list("sizes", sizes.size(), axes.size()));
  const bool stretch = c.attributes().get_string("keep_aspect_ratio_policy", "stretch") == "stretch";
  Shape out = shape;
  if (stretch) {
    for (size_t i = 0; i < axes.size(); ++i) out[static_cast<size_t>(axes[i])] = sizes[i];
  } else if (is_known(shape) && is_known(sizes)) {
    TREADLE_ASSIGN(const double scale, common_scale(c.attributes(), known_dims(sizes), known_dims(shape), axes));
    for (int64_t axis : axes) {
      Dim& size = out[static_cast<size_t>(axis)];
      const double rounded = scale * static_cast<double>(size.value()) + 0.5;
      if (!(rounded < 1e15)) return error(Code::kLimit, "size {} times {} is too large", size.value(), scale);
      size = static_cast<int64_t>(rounded);
    }
  } else {
    for (int64_t axis : axes) out[static_cast<size_t>(axis)] = Dim::unknown();
  }
  for (const Dim& d : out) {
    if (d.is_known() && d.value() < 0) return error(Code::kInvalidArgument, "a size is {}", d.value());
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

// Scales of which not every one is a number: sizes over sizes, mostly.
Status infer_by_symbolic_scales(InferContext& c, const Shape& shape, const Ints& axes, const Shape& scales) {
  TREADLE_TRY(check_list("scales", scales.size(), axes.size()));
  Shape out = shape;
  for (size_t i = 0; i < axes.size(); ++i) {
    Dim& size = out[static_cast<size_t>(axes[i])];
    size = rounded_down(size * scales[i]);
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

bool is_given(const InferContext& c, size_t place) {
  return place != 0 && c.has_input(place) && !length_of(c, place).is_known(0);
}

Status infer_resize(InferContext& c) {
  TREADLE_TRY(image_ops::resize_options(c.node, is_upsample(c.node), c.version()).status());
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  TREADLE_ASSIGN(const Ints axes, resized_axes(c.attributes(), shape->size()));
  const InputPlaces places = input_places(c.node, c.version());
  if (places.scales == 0) {
    return infer_by_scales(c, *shape, axes, scales_of_attributes(c.attributes(), c.version(), shape->size()));
  }
  const bool by_sizes = is_given(c, places.sizes), by_scales = is_given(c, places.scales);
  // Before, scales could not be left out.
  if (c.version() >= 13 && by_sizes && by_scales && length_of(c, places.sizes).is_known() &&
      length_of(c, places.scales).is_known()) {
    return error(Code::kInvalidModel, "expected scales or sizes, found both");
  }
  if (by_sizes) {
    if (auto sizes = c.dims_value(places.sizes)) return infer_by_sizes(c, *shape, axes, *sizes);
  } else if (by_scales) {
    if (const Tensor* scales = c.value(places.scales)) return infer_by_scales(c, *shape, axes, numbers_of(*scales));
    if (auto scales = small_reals(c, places.scales)) return infer_by_symbolic_scales(c, *shape, axes, *scales);
  } else {
    return error(Code::kInvalidArgument, "expected scales or sizes, found neither");
  }
  Shape out = *shape;
  for (int64_t axis : axes) out[static_cast<size_t>(axis)] = Dim::unknown();
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

// --- Preparation

Tensor constant_of(const PrepareContext& c, size_t place) {
  if (place == 0 || !c.has_input(place) || c.inputs[place].element_count() == 0) return {};
  return Tensor::from_buffer(c.inputs[place].type, c.inputs[place].dims, {}, c.inputs[place].constant);
}

// One entry per axis of the input; axes that are not resized have scale 1.
Result<std::vector<AxisScale>> axis_scales(const PrepareContext& c, const ResizeOptions& options) {
  const Dims &in = c.inputs[0].dims, &out = c.outputs[0].dims;
  TREADLE_ASSIGN(const Ints axes, resized_axes(c.attributes(), in.size()));
  const InputPlaces places = input_places(c.node, c.version());
  const Tensor sizes = constant_of(c, places.sizes), scales = constant_of(c, places.scales);
  const Tensor roi = constant_of(c, places.roi);
  std::vector<AxisScale> result;
  for (size_t i = 0; i < in.size(); ++i) result.push_back({in[i], out[i], 1.0, 0.0, 1.0});
  Numbers factors;
  if (sizes.defined()) {
    TREADLE_ASSIGN(const double common, common_scale(c.attributes(), sizes.to_int64s(), in, axes));
    for (int64_t axis : axes) {
      const auto a = static_cast<size_t>(axis);
      factors.push_back(common > 0 ? common : static_cast<double>(out[a]) / static_cast<double>(in[a]));
    }
  } else {
    factors = scales.defined() ? numbers_of(scales) : scales_of_attributes(c.attributes(), c.version(), in.size());
  }
  const bool crops = options.coordinates == image_ops::Coordinates::kTfCropAndResize;
  if (crops) TREADLE_TRY(check_list("roi", static_cast<size_t>(roi.element_count()), 2 * axes.size()));
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisScale& axis = result[static_cast<size_t>(axes[i])];
    axis.scale = factors[i];
    if (!crops) continue;
    axis.roi_start = roi.double_at(static_cast<int64_t>(i));
    axis.roi_end = roi.double_at(static_cast<int64_t>(axes.size() + i));
  }
  return result;
}

// --- Nearest neighbours

struct NearestState {
  std::vector<AxisTaps> axes;       // the trailing ones that stay as they are, merged into runs
  std::vector<int64_t> in_strides;  // in bytes, by axis
  std::vector<int64_t> out_strides;
  size_t run = 0;                        // bytes
  bool doubles = false;                  // the last axis gives every element twice
  std::vector<std::byte> extrapolation;  // a run of the extrapolation value
  size_t first = 0;                      // axis that is resized first
  int64_t leading = 1;                   // positions of the axes before it; of axis 0 if there are none
  double leading_ns = 0;
  uint32_t output = 0;
};

void fill_runs(const NearestState& s, char* out, size_t bytes) {
  for (size_t i = 0; i < bytes; i += s.run) std::memcpy(out + i, s.extrapolation.data(), s.run);
}

template <class T>
void pick_elements(const AxisTaps& axis, const char* in, char* out) {
  const auto* from = reinterpret_cast<const T*>(in);
  auto* to = reinterpret_cast<T*>(out);
  const int64_t* index = axis.indices.data();
  for (int64_t i = 0; i < axis.out; ++i) to[i] = from[index[i]];
}

template <class T>
void double_elements(const AxisTaps& axis, const char* in, char* out) {
  const auto* from = reinterpret_cast<const T*>(in);
  auto* to = reinterpret_cast<T*>(out);
  for (int64_t i = 0; i < axis.in; ++i) to[2 * i] = to[2 * i + 1] = from[i];
}

// A row of single elements; false where it has to be copied run by run.
bool copy_row(const NearestState& s, const AxisTaps& axis, const char* in, char* out) {
  if (!axis.is_outside.empty() || (s.run != 1 && s.run != 2 && s.run != 4 && s.run != 8)) return false;
  const auto copy = [&]<class T>(T) {
    s.doubles ? double_elements<T>(axis, in, out) : pick_elements<T>(axis, in, out);
  };
  s.run == 1 ? copy(uint8_t()) : s.run == 2 ? copy(uint16_t()) : s.run == 4 ? copy(uint32_t()) : copy(uint64_t());
  return true;
}

// Elements [begin, end) of an axis of the result.
void copy_nearest(const NearestState& s, size_t axis, const char* in, char* out, int64_t begin, int64_t end,
                  StopPoll& stop) {
  const AxisTaps& a = s.axes[axis];
  const bool innermost = axis + 1 == s.axes.size();
  if (innermost && stop.after(static_cast<double>(end - begin))) return;
  if (innermost && end - begin == a.out && copy_row(s, a, in, out)) return;
  const auto bytes = static_cast<size_t>(s.out_strides[axis]);
  out += begin * s.out_strides[axis];
  for (int64_t i = begin; i < end && !stop.after(kByteNs * static_cast<double>(s.run)); ++i, out += bytes) {
    const auto at = static_cast<size_t>(i);
    if (!a.is_outside.empty() && a.is_outside[at]) {
      fill_runs(s, out, bytes);
    } else if (a.is_outside.empty() && i > begin && a.indices[at] == a.indices[at - 1]) {
      std::memcpy(out, out - bytes, bytes);
    } else if (const char* from = in + a.indices[at] * s.in_strides[axis]; innermost) {
      std::memcpy(out, from, s.run);
    } else {
      copy_nearest(s, axis + 1, from, out, 0, s.axes[axis + 1].out, stop);
    }
  }
}

uint32_t run_nearest(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const NearestState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[s.output]]);
  if (s.axes.empty()) {
    return unless_stopped(copy_in_pieces(out, in, s.run));
  }
  // The leading axes that stay as they are (batch and channels) are walked as one.
  parallel_for(s.leading, s.leading_ns, [&](int64_t begin, int64_t end, int) {
    StopPoll stop;
    if (s.first == 0) return copy_nearest(s, 0, in, out, begin, end, stop);
    for (int64_t i = begin; i < end; ++i) {
      copy_nearest(s, s.first, in + i * s.in_strides[s.first - 1], out + i * s.out_strides[s.first - 1], 0,
                   s.axes[s.first].out, stop);
    }
  });
  return 0;
}

Status prepare_nearest(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes) {
  const ElementType type = c.inputs[0].type;
  auto* s = c.make_state<NearestState>();
  s->output = static_cast<uint32_t>(c.inputs.size());
  const size_t width = byte_width(type);
  std::vector<std::byte> value(width);
  if (options.extrapolation != 0 && kernels::can_convert(ElementType::kFloat, type)) {
    kernels::cast(ElementType::kFloat, type, &options.extrapolation, value.data(), 1);
  }
  s->run = width;
  while (!axes.empty() && axes.back().identity) {
    s->run *= static_cast<size_t>(axes.back().out);
    axes.pop_back();
  }
  for (size_t i = 0; i < s->run / width; ++i) {
    s->extrapolation.insert(s->extrapolation.end(), value.begin(), value.end());
  }
  s->axes = std::move(axes);
  s->in_strides.resize(s->axes.size());
  s->out_strides.resize(s->axes.size());
  auto in_stride = static_cast<int64_t>(s->run), out_stride = in_stride;
  for (size_t i = s->axes.size(); i-- > 0;) {
    s->in_strides[i] = in_stride;
    s->out_strides[i] = out_stride;
    in_stride *= s->axes[i].in;
    out_stride *= s->axes[i].out;
  }
  while (s->first < s->axes.size() && s->axes[s->first].identity) s->leading *= s->axes[s->first++].out;
  if (s->first == 0 && !s->axes.empty()) s->leading = s->axes[0].out;
  c.cost_ns = static_cast<double>(c.outputs[0].byte_size()) * (s->run >= 64 ? 0.1 : 0.3);
  s->leading_ns = c.cost_ns / static_cast<double>(std::max<int64_t>(s->leading, 1));
  if (!s->axes.empty()) {
    const AxisTaps& last = s->axes.back();
    s->doubles = last.out == 2 * last.in;
    for (int64_t i = 0; i < last.out; ++i) s->doubles &= last.indices[static_cast<size_t>(i)] == i / 2;
  }
  c.set_kernel(run_nearest, s);
  return {};
}

// --- Interpolation

template <class T>
struct InterpolateState {
  std::vector<image_ops::ResamplePass<T>> passes;  // over one plane
  kernels::TileConverter widen, narrow;
  bool converts = false;           // numbers are not T, or have to be rounded
  int64_t planes = 1;              // leading axes that stay as they are
  size_t inputs = 0, outputs = 0;  // of a plane, in numbers; a complex element is two
  size_t buffer = 0;               // numbers in each of the two buffers
  bool rounds = false;             // integers: to nearest, ties to even
  double low = 0, high = 0;        // what an integer type can hold; low == high: no bounds
  T extrapolation{};
  size_t in_bytes = 0, out_bytes = 0;  // of a plane
  double plane_ns = 0;
  std::vector<AxisTaps> axes;  // with elements outside; empty when there are none
  uint32_t output = 0, scratch = 0;
};

// Sets output elements that lie outside along any axis.
template <class T>
void extrapolate(const InterpolateState<T>& s, size_t axis, T* out, int64_t count, bool outside) {
  if (axis == s.axes.size()) {
    if (outside) std::fill_n(out, count, s.extrapolation);
    return;
  }
  const AxisTaps& a = s.axes[axis];
  const int64_t step = a.out ? count / a.out : 0;
  for (int64_t i = 0; i < a.out; ++i) {
    const bool here = !a.is_outside.empty() && a.is_outside[static_cast<size_t>(i)];
    extrapolate(s, axis + 1, out + i * step, step, outside || here);
  }
}

// From `from` through the buffers to `to`, which may be one of them.
template <class T>
void run_passes(const InterpolateState<T>& s, const T* from, T* const (&buffers)[2], T* to) {
  if (s.passes.empty()) std::copy_n(from, s.inputs, to);
  for (size_t i = 0; i < s.passes.size(); ++i) {
    T* target = i + 1 == s.passes.size() ? to : buffers[i % 2];
    s.passes[i].run(from, target);
    from = target;
  }
  if (!s.axes.empty()) extrapolate(s, 0, to, static_cast<int64_t>(s.outputs), false);
}

template <class T>
void round_and_bound(const InterpolateState<T>& s, T* numbers) {
  if (s.rounds) std::transform(numbers, numbers + s.outputs, numbers, [](T x) { return std::nearbyint(x); });
  if (s.low == s.high) return;
  const auto low = static_cast<T>(s.low), high = static_cast<T>(s.high);
  std::transform(numbers, numbers + s.outputs, numbers, [=](T x) { return std::clamp(x, low, high); });
}

// One plane, by way of `scratch`.
template <class T>
void interpolate_plane(const InterpolateState<T>& s, const std::byte* in, T* scratch, std::byte* out) {
  T* const buffers[2] = {scratch + s.buffer, scratch + 2 * s.buffer};
  if (!s.converts) return run_passes(s, reinterpret_cast<const T*>(in), buffers, reinterpret_cast<T*>(out));
  kernels::convert(s.widen, in, scratch, s.inputs);
  T* result = buffers[(s.passes.size() + 1) % 2];
  run_passes(s, scratch, buffers, result);
  round_and_bound(s, result);
  kernels::convert(s.narrow, result, out, s.outputs);
}

template <class T>
uint32_t run_interpolate(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const InterpolateState<T>*>(state);
  auto* scratch = static_cast<T*>(slots[operands[s.scratch]]);
  const auto* in = static_cast<const std::byte*>(slots[operands[0]]);
  auto* out = static_cast<std::byte*>(slots[operands[s.output]]);
  parallel_for(s.planes, s.plane_ns, [&](int64_t begin, int64_t end, int worker) {
    T* own = scratch + static_cast<size_t>(worker) * 3 * s.buffer;
    for (int64_t plane = begin; plane < end; ++plane) {
      const auto at = static_cast<size_t>(plane);
      interpolate_plane(s, in + at * s.in_bytes, own, out + at * s.out_bytes);
    }
  });
  return 0;
}

// Integers are rounded, and narrow ones bounded: cubic weights may leave their range.
template <class State>
void set_bounds(State* s, ElementType type) {
  s->rounds = is_integer(type);
  const int bits = static_cast<int>(byte_width(type)) * 8;
  if (!is_integer(type) || bits > 32) return;
  s->low = is_signed_integer(type) ? -std::ldexp(1.0, bits - 1) : 0;
  s->high = std::ldexp(1.0, is_signed_integer(type) ? bits - 1 : bits) - 1;
}

// What shrinks goes first and what grows last, the innermost axis before the others, so that most numbers are made by
// passes that run along rows of the axes within.
std::vector<size_t> cheapest_order(const std::vector<AxisTaps>& axes) {
  std::vector<size_t> order;
  for (size_t d = 0; d < axes.size(); ++d) {
    if (!axes[d].identity && axes[d].out < axes[d].in) order.push_back(d);
  }
  for (size_t d = axes.size(); d-- > 0;) {
    if (!axes[d].identity && axes[d].out >= axes[d].in) order.push_back(d);
  }
  return order;
}

template <class T>
Status prepare_interpolate(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes,
                           ElementType number_type, int64_t parts) {
  constexpr ElementType kWide = std::is_same_v<T, float> ? ElementType::kFloat : ElementType::kDouble;
  constexpr double kTapNs = 0.3;
  auto* s = c.make_state<InterpolateState<T>>();
  size_t leading = 0;
  for (; leading < axes.size() && axes[leading].identity; ++leading) s->planes *= axes[leading].out;
  axes.erase(axes.begin(), axes.begin() + static_cast<std::ptrdiff_t>(leading));
  Dims dims;
  for (const AxisTaps& axis : axes) dims.push_back(axis.in);
  int64_t largest = element_count_unchecked(dims) * parts;
  s->inputs = static_cast<size_t>(largest);
  for (size_t d : cheapest_order(axes)) {
    auto& pass = s->passes.emplace_back();
    pass.outer = element_count_unchecked(dims.span().first(d));
    pass.inner = element_count_unchecked(dims.span().subspan(d + 1)) * parts;
    pass.in = axes[d].in;
    pass.out = axes[d].out;
    pass.taps = axes[d].taps;
    pass.indices.assign(axes[d].indices.begin(), axes[d].indices.end());
    pass.weights.assign(axes[d].weights.begin(), axes[d].weights.end());
    dims[d] = axes[d].out;
    largest = std::max(largest, element_count_unchecked(dims) * parts);
    s->plane_ns += kTapNs * static_cast<double>(element_count_unchecked(dims) * parts * pass.taps);
  }
  s->outputs = static_cast<size_t>(element_count_unchecked(dims) * parts);
  s->in_bytes = s->inputs * byte_width(number_type);
  s->out_bytes = s->outputs * byte_width(number_type);
  s->buffer = static_cast<size_t>(largest);
  s->converts = number_type != kWide;
  s->widen = kernels::make_converter(number_type, kWide);
  s->narrow = kernels::make_converter(kWide, number_type);
  set_bounds(s, number_type);
  s->extrapolation = static_cast<T>(options.extrapolation);
  s->output = static_cast<uint32_t>(c.inputs.size());
  s->scratch = c.scratch_operand();
  const size_t workers = scratch_parts(s->planes, s->plane_ns, c.threads);
  c.scratch_bytes = std::max<size_t>(workers * 3 * s->buffer * sizeof(T), 64);
  if (std::any_of(axes.begin(), axes.end(), [](const AxisTaps& a) { return !a.is_outside.empty(); })) {
    s->axes = std::move(axes);
  }
  c.set_kernel(run_interpolate<T>, s);
  return {};
}

uint32_t run_nothing(const void*, void* const*, const uint32_t*) {
  return 0;
}

Status prepare_resize(PrepareContext& c) {
  const ElementType type = c.inputs[0].type;
  TREADLE_ASSIGN(const ResizeOptions options, image_ops::resize_options(c.node, is_upsample(c.node), c.version()));
  if (c.outputs[0].element_count() == 0) return c.set_kernel(run_nothing, nullptr), Status();
  if (c.inputs[0].element_count() == 0) {
    return error(Code::kInvalidArgument, "an input of shape {} has nothing to resize", to_string(c.inputs[0].dims));
  }
  TREADLE_ASSIGN(const std::vector<AxisScale> scales, axis_scales(c, options));
  std::vector<AxisTaps> axes;
  for (const AxisScale& axis : scales) {
    TREADLE_TRY(image_ops::check_taps(options, axis));
    axes.push_back(make_taps(options, axis));
  }
  if (options.mode == ResizeMode::kNearest) return prepare_nearest(c, options, std::move(axes));
  switch (compute_type(type)) {
    case ComputeType::kNone:
      if (type == ElementType::kComplex64) {
        return prepare_interpolate<float>(c, options, std::move(axes), ElementType::kFloat, 2);
      }
      return prepare_interpolate<double>(c, options, std::move(axes), ElementType::kDouble, 2);
    case ComputeType::kF32:
      return prepare_interpolate<float>(c, options, std::move(axes), type, 1);
    default:
      // Narrow integers fit a float, the others do not.
      if (byte_width(type) <= 2) return prepare_interpolate<float>(c, options, std::move(axes), type, 1);
      return prepare_interpolate<double>(c, options, std::move(axes), type, 1);
  }
}

// Strings can be copied, not interpolated.
Status compute_resize(ComputeContext& c) {
  const std::string_view mode = c.attributes().get_string("mode", "nearest");
  if (mode != "nearest") return error(Code::kInvalidArgument, "strings cannot be interpolated (mode {})", mode);
  return compute_by_position(c);
}

Status resized_axes(AxisContext& c) {
  const bool crops = c.attributes().get_string("coordinate_transformation_mode") == "tf_crop_and_resize";
  if (crops) return looks_along("it crops its input");
  return axes::of_kept_size(c, "it resizes it");
}

}  // namespace
}  // namespace treadle

TREADLE_OP(Resize, "") {
  op.since(10)
      .in("X", "T")
      .in("scales", "tensor(float)")
      .out("Y", "T")
      .attr("mode", "nearest")
      .type("T", types::kAllTensors);
  op.since(11)
      .no_inputs()
      .in("X", "T1")
      .in("roi", "T2")
      .in("scales", "tensor(float)")
      .in("sizes", "tensor(int64)", Arity::kOptional)
      .out("Y", "T1")
      .attr("coordinate_transformation_mode", "half_pixel")
      .attr("cubic_coeff_a", -0.75)
      .attr("exclude_outside", 0)
      .attr("extrapolation_value", 0.0)
      .attr("nearest_mode", "round_prefer_floor")
      .drop_type("T")
      .type("T1", types::kAllTensors)
      .type("T2", types::kFloats);
  op.since(13)
      .in("roi", "T2", Arity::kOptional)
      .in("scales", "tensor(float)", Arity::kOptional)
      .type("T1", types::kAllTensorsIr4);
  op.since(18)
      .attr("antialias", 0)
      .optional("axes", ir::AttributeKind::kInts)
      .attr("keep_aspect_ratio_policy", "stretch");
  op.since(19);
  op.infer(infer_resize).prepare(prepare_resize).compute(compute_resize).shape_inputs({1, 2, 3}).axes(resized_axes);
}

TREADLE_OP(Upsample, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .required("height_scale", ir::AttributeKind::kFloat)
      .attr("mode", "nearest")
      .required("width_scale", ir::AttributeKind::kFloat)
      .type("T", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kInt64, ElementType::kBool,
                         ElementType::kFloat16, ElementType::kDouble));
  op.since(7)
      .drop_attr("height_scale")
      .drop_attr("width_scale")
      .required("scales", ir::AttributeKind::kFloats)
      .type("T", types::kAllTensors);
  op.since(9).in("scales", "tensor(float)").drop_attr("scales");
  op.since(10).deprecated();
  op.infer(infer_resize).prepare(prepare_resize).compute(compute_resize).shape_inputs({1}).axes(resized_axes);
}
