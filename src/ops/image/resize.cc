// Resize and Upsample: separable, one axis after the other. Nearest neighbours are copied, whatever their type; else
// elements are converted to float or double, combined and converted back.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/convert.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/parallel.h"
#include "ops/image/resample.h"

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
    const bool whole = scale == std::floor(scale) && scale < 1e9;
    return whole ? size * Dim(static_cast<int64_t>(scale)) : Dim();
  }
  const float product = std::floor(static_cast<float>(size.value()) * static_cast<float>(scale));
  if (product > 1e15f) return error(Code::kLimit, "size {} times {} is too large", size.value(), scale);
  return Dim(static_cast<int64_t>(product));
}

// The common scale of keep_aspect_ratio_policy; 0 for "stretch".
Result<double> common_scale(const ir::Attributes& attributes, std::span<const int64_t> sizes, const Dims& dims,
                            const Ints& axes) {
  const std::string_view policy = attributes.get_string("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return 0.0;
  const bool smallest = policy == "not_larger";
  if (!smallest && policy != "not_smaller") {
    return error(Code::kInvalidModel, "keep_aspect_ratio_policy is {}, expected stretch, not_larger or not_smaller",
                 policy);
  }
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
  if (by_sizes) {
    if (auto sizes = c.dims_value(places.sizes)) return infer_by_sizes(c, *shape, axes, *sizes);
  } else if (by_scales) {
    if (const Tensor* scales = c.value(places.scales)) return infer_by_scales(c, *shape, axes, numbers_of(*scales));
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
  std::vector<std::byte> extrapolation;  // a run of the extrapolation value
  size_t first = 0;                      // axis that is resized first
  int64_t leading = 1;                   // positions of the axes before it; of axis 0 if there are none
  double leading_ns = 0;
  uint32_t output = 0;
};

void fill_runs(const NearestState& s, char* out, size_t bytes) {
  for (size_t i = 0; i < bytes; i += s.run) std::memcpy(out + i, s.extrapolation.data(), s.run);
}

// Elements [begin, end) of an axis of the result.
void copy_nearest(const NearestState& s, size_t axis, const char* in, char* out, int64_t begin, int64_t end) {
  const AxisTaps& a = s.axes[axis];
  const bool innermost = axis + 1 == s.axes.size();
  out += begin * s.out_strides[axis];
  for (int64_t i = begin; i < end; ++i, out += s.out_strides[axis]) {
    const char* from = in + a.indices[static_cast<size_t>(i)] * s.in_strides[axis];
    if (!a.is_outside.empty() && a.is_outside[static_cast<size_t>(i)]) {
      fill_runs(s, out, static_cast<size_t>(s.out_strides[axis]));
    } else if (innermost && s.run == 4) {
      std::memcpy(out, from, 4);
    } else if (innermost) {
      std::memcpy(out, from, s.run);
    } else {
      copy_nearest(s, axis + 1, from, out, 0, s.axes[axis + 1].out);
    }
  }
}

uint32_t run_nearest(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const NearestState*>(state);
  const auto* in = static_cast<const char*>(slots[operands[0]]);
  auto* out = static_cast<char*>(slots[operands[s.output]]);
  if (s.axes.empty()) {
    std::memcpy(out, in, s.run);
    return 0;
  }
  // The leading axes that stay as they are (batch and channels) are walked as one.
  parallel_for(s.leading, s.leading_ns, [&](int64_t begin, int64_t end, int) {
    if (s.first == 0) return copy_nearest(s, 0, in, out, begin, end);
    for (int64_t i = begin; i < end; ++i) {
      copy_nearest(s, s.first, in + i * s.in_strides[s.first - 1], out + i * s.out_strides[s.first - 1], 0,
                   s.axes[s.first].out);
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
  c.cost_ns = static_cast<double>(c.outputs[0].byte_size()) * (s->run >= 64 ? 0.1 : 0.5);
  s->leading_ns = c.cost_ns / static_cast<double>(std::max<int64_t>(s->leading, 1));
  c.set_kernel(run_nearest, s);
  return {};
}

// --- Interpolation

template <class T>
struct Pass {
  int64_t outer = 1, in = 0, out = 0, inner = 1, taps = 1;
  std::vector<int64_t> indices;
  std::vector<T> weights;

  void run(const T* from, T* to) const {
    constexpr double kTapNs = 0.3;
    parallel_for(outer * out, kTapNs * static_cast<double>(taps * inner), [&](int64_t begin, int64_t end, int) {
      for (int64_t line = begin; line < end; ++line)
        run_line(from + line / out * in * inner, line % out, to + line * inner);
    });
  }

  void run_line(const T* from, int64_t i, T* to) const {
    const auto first = static_cast<size_t>(i * taps);
    for (int64_t j = 0; j < inner; ++j) to[j] = 0;
    for (size_t k = first; k < first + static_cast<size_t>(taps); ++k) {
      const T w = weights[k];
      const T* row = from + indices[k] * inner;
      for (int64_t j = 0; j < inner; ++j) to[j] += w * row[j];
    }
  }
};

template <class T>
struct InterpolateState {
  std::vector<Pass<T>> passes;
  kernels::TileConverter widen, narrow;
  size_t inputs = 0, outputs = 0;  // in numbers; a complex element is two
  size_t buffer = 0;               // numbers in each of the two buffers
  bool rounds = false;             // integers: to nearest, ties to even
  double low = 0, high = 0;        // what an integer type can hold; low == high: no bounds
  T extrapolation{};
  std::vector<AxisTaps> axes;  // with elements outside; empty when there are none
  int64_t parts = 1;           // numbers per element
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

template <class T>
uint32_t run_interpolate(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const InterpolateState<T>*>(state);
  auto* first = static_cast<T*>(slots[operands[s.scratch]]);
  T* second = first + s.buffer;
  parallel_convert(s.widen, slots[operands[0]], first, s.inputs);
  for (const Pass<T>& pass : s.passes) {
    pass.run(first, second);
    std::swap(first, second);
  }
  if (!s.axes.empty()) extrapolate(s, 0, first, static_cast<int64_t>(s.outputs), false);
  if (s.rounds) std::transform(first, first + s.outputs, first, [](T x) { return std::nearbyint(x); });
  if (s.low != s.high) {
    const auto low = static_cast<T>(s.low), high = static_cast<T>(s.high);
    std::transform(first, first + s.outputs, first, [=](T x) { return std::clamp(x, low, high); });
  }
  parallel_convert(s.narrow, first, slots[operands[s.output]], s.outputs);
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

template <class T>
Status prepare_interpolate(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes,
                           ElementType number_type, int64_t parts) {
  constexpr ElementType kWide = std::is_same_v<T, float> ? ElementType::kFloat : ElementType::kDouble;
  auto* s = c.make_state<InterpolateState<T>>();
  Dims dims = c.inputs[0].dims;
  int64_t largest = element_count_unchecked(dims) * parts;
  s->inputs = static_cast<size_t>(largest);
  s->outputs = static_cast<size_t>(c.outputs[0].element_count() * parts);
  for (size_t d = 0; d < axes.size(); ++d) {
    if (axes[d].identity) continue;
    Pass<T>& pass = s->passes.emplace_back();
    pass.outer = element_count_unchecked(dims.span().first(d));
    pass.inner = element_count_unchecked(dims.span().subspan(d + 1)) * parts;
    pass.in = axes[d].in;
    pass.out = axes[d].out;
    pass.taps = axes[d].taps;
    pass.indices = axes[d].indices;
    pass.weights.assign(axes[d].weights.begin(), axes[d].weights.end());
    dims[d] = axes[d].out;
    largest = std::max(largest, element_count_unchecked(dims) * parts);
  }
  s->buffer = static_cast<size_t>(largest);
  s->widen = kernels::make_converter(number_type, kWide);
  s->narrow = kernels::make_converter(kWide, number_type);
  set_bounds(s, number_type);
  s->extrapolation = static_cast<T>(options.extrapolation);
  s->output = static_cast<uint32_t>(c.inputs.size());
  s->scratch = c.scratch_operand();
  c.scratch_bytes = 2 * s->buffer * sizeof(T);
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
  op.infer(infer_resize).prepare(prepare_resize).compute(compute_resize).shape_inputs({1, 2, 3});
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
  op.infer(infer_resize).prepare(prepare_resize).compute(compute_resize).shape_inputs({1});
}
