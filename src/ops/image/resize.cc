// Resize and Upsample, one axis after the other. For nearest neighbours, elements of any type are copied. Otherwise
// elements are converted to float or double, combined, and converted back.

#include "ops/image/resize.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/small_contents.h"
#include "type/dim_fractions.h"

namespace treadle {
namespace {

using image_ops::AxisScale;
using image_ops::AxisTaps;
using image_ops::ResizeMode;
using image_ops::ResizeOptions;

using Numbers = InlineVector<double, 8>;

bool is_upsample(const ir::NodeInfo& node) {
  return node.op->name == "Upsample";
}

// Indices of a version's inputs; 0: it has no such input.
struct InputIndices {
  size_t roi = 0, scales = 0, sizes = 0;
};

InputIndices input_indices(const ir::NodeInfo& node, int version) {
  if (is_upsample(node)) return {0, version >= 9 ? size_t{1} : 0, 0};
  return version < 11 ? InputIndices{0, 1, 0} : InputIndices{1, 2, 3};
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
  // In single precision the rounding of the scale cancels (0.7f times 10 is 7), as long as a float holds the size.
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
    if (d.is_known() && d.value() < 0)
      return error(Code::kInvalidArgument, "the result would have a size of {}, expected at least 0", d.value());
  }
  c.set_output(0, c.element(0), std::move(out));
  return {};
}

// Inference with scales that are not all numbers: mostly quotients of sizes.
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
  TREADLE_TRY(image_ops::resize_options(c.node).status());
  const Shape* shape = c.shape(0);
  if (!shape) return c.set_output(0, c.element(0)), Status();
  TREADLE_ASSIGN(const Ints axes, resized_axes(c.attributes(), shape->size()));
  const InputIndices at = input_indices(c.node, c.version());
  if (at.scales == 0) {
    return infer_by_scales(c, *shape, axes, scales_of_attributes(c.attributes(), c.version(), shape->size()));
  }
  const bool by_sizes = is_given(c, at.sizes), by_scales = is_given(c, at.scales);
  // Before version 13, scales were required.
  if (c.version() >= 13 && by_sizes && by_scales && length_of(c, at.sizes).is_known() &&
      length_of(c, at.scales).is_known()) {
    return error(Code::kInvalidModel, "expected scales or sizes, found both");
  }
  if (by_sizes) {
    if (auto sizes = c.dims_value(at.sizes)) return infer_by_sizes(c, *shape, axes, *sizes);
  } else if (by_scales) {
    if (const Tensor* scales = c.value(at.scales)) return infer_by_scales(c, *shape, axes, numbers_of(*scales));
    if (auto scales = small_reals(c, at.scales)) return infer_by_symbolic_scales(c, *shape, axes, *scales);
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
  if (!c.has_input(place) || c.inputs[place].element_count() == 0) return {};
  return Tensor::from_buffer(c.inputs[place].type, c.inputs[place].dims, {}, c.inputs[place].constant);
}

// One entry per axis of the input; axes that are not resized have scale 1.
Result<std::vector<AxisScale>> axis_scales(const ir::NodeInfo& node, const ResizeOptions& options, const Dims& in,
                                           const Dims& out, const std::function<Tensor(size_t)>& constant) {
  const ir::Attributes& attributes = node.attributes;
  const int version = node.version->since;
  TREADLE_ASSIGN(const Ints axes, resized_axes(attributes, in.size()));
  const InputIndices at = input_indices(node, version);
  const auto contents = [&](size_t place) { return place == 0 ? Tensor() : constant(place); };
  const Tensor sizes = contents(at.sizes), scales = contents(at.scales), roi = contents(at.roi);
  std::vector<AxisScale> result;
  for (size_t i = 0; i < in.size(); ++i) result.push_back({in[i], out[i], 1.0, 0.0, 1.0});
  Numbers factors;
  if (sizes.defined()) {
    TREADLE_ASSIGN(const double common, common_scale(attributes, sizes.to_int64s(), in, axes));
    for (int64_t axis : axes) {
      const auto a = static_cast<size_t>(axis);
      factors.push_back(common > 0 ? common : static_cast<double>(out[a]) / static_cast<double>(in[a]));
    }
  } else {
    factors = scales.defined() ? numbers_of(scales) : scales_of_attributes(attributes, version, in.size());
  }
  const bool crops = options.coordinates == image_ops::Coordinates::kTfCropAndResize;
  if (crops) {
    TREADLE_TRY(check_list("roi", roi.defined() ? static_cast<size_t>(roi.element_count()) : 0, 2 * axes.size()));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    AxisScale& axis = result[static_cast<size_t>(axes[i])];
    axis.scale = factors[i];
    if (!crops) continue;
    axis.roi_start = roi.double_at(static_cast<int64_t>(i));
    axis.roi_end = roi.double_at(static_cast<int64_t>(axes.size() + i));
  }
  return result;
}

uint32_t run_nothing(const void*, void* const*, const uint32_t*) {
  return 0;
}

Status prepare_resize(PrepareContext& c) {
  TREADLE_ASSIGN(const ResizeOptions options, image_ops::resize_options(c.node));
  if (c.outputs[0].element_count() == 0) return c.set_kernel(run_nothing, nullptr), Status();
  if (c.inputs[0].element_count() == 0) {
    return error(Code::kInvalidArgument, "an input of shape {} has nothing to resize, expected at least one element",
                 to_string(c.inputs[0].dims));
  }
  TREADLE_ASSIGN(std::vector<AxisTaps> axes,
                 image_ops::resize_taps(c.node, options, c.inputs[0].dims, c.outputs[0].dims,
                                        [&](size_t place) { return constant_of(c, place); }));
  if (options.mode == ResizeMode::kNearest) return image_ops::prepare_nearest(c, options, std::move(axes));
  return image_ops::prepare_interpolation(c, options, std::move(axes));
}

// Strings can be copied, not interpolated.
Status compute_resize(ComputeContext& c) {
  const std::string_view mode = c.attributes().get_string("mode", "nearest");
  if (mode != "nearest")
    return error(Code::kInvalidArgument, "attribute mode is {}, expected nearest for strings", mode);
  return compute_by_position(c);
}

Status resized_axes(AxisContext& c) {
  const bool crops = c.attributes().get_string("coordinate_transformation_mode") == "tf_crop_and_resize";
  if (crops) return looks_along("it crops its input");
  return axes::of_kept_size(c, "it resizes it");
}

}  // namespace

Result<ResizeOptions> image_ops::resize_options(const ir::NodeInfo& node) {
  return resize_options(node, is_upsample(node), node.version->since);
}

Result<std::vector<AxisTaps>> image_ops::resize_taps(const ir::NodeInfo& node, const ResizeOptions& options,
                                                     const Dims& in, const Dims& out,
                                                     const std::function<Tensor(size_t)>& constant) {
  TREADLE_ASSIGN(const std::vector<AxisScale> scales, axis_scales(node, options, in, out, constant));
  std::vector<AxisTaps> axes;
  for (const AxisScale& axis : scales) {
    TREADLE_TRY(check_taps(options, axis));
    axes.push_back(make_taps(options, axis));
  }
  return axes;
}

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
