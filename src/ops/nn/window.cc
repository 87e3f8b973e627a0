#include "ops/nn/window.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "kernels/dispatch.h"

namespace treadle::nn {

namespace {

using kernels::Spatial;

Status read_list(const ir::Attributes& attributes, const char* name, size_t axes, int64_t least, Spatial& out) {
  if (!attributes.has(name)) return {};
  const auto list = attributes.get_ints(name);
  if (list.size() != axes) {
    return error(Code::kInvalidModel, "attribute {} has {} entries, expected one for each of {} spatial axes", name,
                 list.size(), axes);
  }
  for (size_t i = 0; i < axes; ++i) {
    if (list[i] < least || list[i] > INT32_MAX) {
      return error(Code::kInvalidModel, "attribute {} holds {}, expected {} to {}", name, list[i], least, INT32_MAX);
    }
    out[i] = list[i];
  }
  return {};
}

Status read_pads(const ir::Attributes& attributes, size_t axes, Window& window) {
  const auto pads = attributes.get_ints("pads");
  if (pads.empty() || window.auto_pad != AutoPad::kNotSet) return {};
  if (pads.size() != 2 * axes) {
    return error(Code::kInvalidModel, "attribute pads has {} entries, expected two for each of {} spatial axes",
                 pads.size(), axes);
  }
  for (size_t i = 0; i < 2 * axes; ++i) {
    if (pads[i] < 0 || pads[i] > INT32_MAX) {
      return error(Code::kInvalidModel, "attribute pads holds {}, expected 0 to {}", pads[i], INT32_MAX);
    }
    (i < axes ? window.pad_begin[i] : window.pad_end[i - axes]) = pads[i];
  }
  return {};
}

Result<AutoPad> read_auto_pad(const ir::Attributes& attributes) {
  const std::string_view name = attributes.get_string("auto_pad", "NOTSET");
  if (name == "NOTSET" || name.empty()) return AutoPad::kNotSet;
  if (name == "SAME_UPPER") return AutoPad::kSameUpper;
  if (name == "SAME_LOWER") return AutoPad::kSameLower;
  if (name == "VALID") return AutoPad::kValid;
  return error(Code::kInvalidModel, "attribute auto_pad is '{}', expected NOTSET, SAME_UPPER, SAME_LOWER or VALID",
               name);
}

}  // namespace

Result<Dim> Window::positions(size_t axis, const Dim& input, const Dim& kernel_size) const {
  const Dim step(stride[axis]);
  if (auto_pad == AutoPad::kSameUpper || auto_pad == AutoPad::kSameLower) return ceil_div(input, step);
  const Dim padded = input + Dim(pad_begin[axis] + pad_end[axis]);
  const Dim room = padded - extent(axis, kernel_size);
  if (room.is_known() && room.value() < 0) {
    return error(
        Code::kInvalidArgument,
        "the kernel covers {} elements of spatial axis {} of the input, expected at most {}: its size with its padding",
        extent(axis, kernel_size).to_string(), axis, padded.to_string());
  }
  if (!ceil || auto_pad == AutoPad::kValid) return floor_div(room, step) + Dim(1);
  // A window that would begin behind the input and the pads in front is left out.
  return min(ceil_div(room, step), floor_div(input + Dim(pad_begin[axis] - 1), step)) + Dim(1);
}

void Window::resolve_pads(const Spatial& input, const Spatial& output) {
  if (auto_pad != AutoPad::kSameUpper && auto_pad != AutoPad::kSameLower) return;
  for (size_t i = 0; i < static_cast<size_t>(axes); ++i) {
    const int64_t reach = (output[i] - 1) * stride[i] + (kernel[i] - 1) * dilation[i] + 1;
    const int64_t total = std::max<int64_t>(0, reach - input[i]);
    pad_begin[i] = auto_pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
    pad_end[i] = total - pad_begin[i];
  }
}

Result<Window> read_window(const ir::Attributes& attributes, size_t axes) {
  Window window;
  window.axes = static_cast<int>(axes);
  TREADLE_ASSIGN(window.auto_pad, read_auto_pad(attributes));
  window.has_kernel = attributes.has("kernel_shape");
  TREADLE_TRY(read_list(attributes, "kernel_shape", axes, 1, window.kernel));
  TREADLE_TRY(read_list(attributes, "strides", axes, 1, window.stride));
  TREADLE_TRY(read_list(attributes, "dilations", axes, 1, window.dilation));
  TREADLE_TRY(read_pads(attributes, axes, window));
  window.ceil = attributes.get_int("ceil_mode", 0) != 0;
  return window;
}

Result<size_t> spatial_axes(const Shape& shape, std::string_view what) {
  if (shape.size() < 3 || shape.size() > 2 + kernels::kMaxSpatialAxes) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected rank 3 to {}", what, to_string(shape),
                 2 + kernels::kMaxSpatialAxes);
  }
  return shape.size() - 2;
}

Spatial spatial_sizes(const Dims& dims) {
  Spatial sizes{};
  for (size_t i = 2; i < dims.size(); ++i) sizes[i - 2] = dims[i];
  return sizes;
}

// ---------------------------------------------------------------------------------------------------------------------

namespace {

Status check_channels(const InferContext& ctx, const Shape* x, const Shape* w, const Shape* bias) {
  const int64_t group = ctx.attributes().get_int("group", 1);
  if (group < 1 || group > INT32_MAX) {
    return error(Code::kInvalidModel, "attribute group is {}, expected at least 1", group);
  }
  if (x && w && differ((*x)[1], (*w)[1] * Dim(group))) {
    return error(Code::kInvalidArgument,
                 "x has {} channels, expected those that weights of shape {} in {} groups take: {}",
                 (*x)[1].to_string(), to_string(*w), group, ((*w)[1] * Dim(group)).to_string());
  }
  if (w && (*w)[0].is_known() && (*w)[0].value() % group != 0) {
    return error(Code::kInvalidArgument,
                 "the weights have {} output channels, expected a multiple of attribute group, {}", (*w)[0].value(),
                 group);
  }
  if (w && bias && (bias->size() != 1 || differ((*bias)[0], (*w)[0]))) {
    return error(Code::kInvalidArgument, "the bias has shape {}, expected [{}]", to_string(*bias), (*w)[0].to_string());
  }
  return {};
}

}  // namespace

Result<Dim> kernel_size(const Window& window, size_t i, const Shape* weights) {
  const Dim given = window.has_kernel ? Dim(window.kernel[i]) : Dim::unknown();
  if (!weights || (*weights)[i + 2].is_unknown()) return given;
  const Dim size = (*weights)[i + 2];
  if (differ(given, size)) {
    return error(Code::kInvalidModel,
                 "attribute kernel_shape has {} on spatial axis {}, expected that of the weights, whose shape is {}",
                 given.value(), i, to_string(*weights));
  }
  if (size.is_known(0)) {
    return error(Code::kInvalidArgument, "the weights have shape {}, expected at least 1 element on spatial axis {}",
                 to_string(*weights), i);
  }
  return size;
}

Status infer_conv(InferContext& ctx, size_t x_index, size_t w_index, size_t bias_index, ElementType element) {
  const Shape *x = ctx.shape(x_index), *w = ctx.shape(w_index);
  if (!x && !w) return ctx.set_output(0, element), Status();
  TREADLE_ASSIGN(const size_t axes, spatial_axes(x ? *x : *w, x ? "x" : "the weights"));
  if (x && w && x->size() != w->size()) {
    return error(Code::kInvalidArgument, "x and the weights have shapes {} and {}, expected equal ranks", to_string(*x),
                 to_string(*w));
  }
  TREADLE_TRY(check_channels(ctx, x, w, ctx.shape(bias_index)));
  TREADLE_ASSIGN(const Window window, read_window(ctx.attributes(), axes));
  Shape out(axes + 2, Dim::unknown());
  if (x) out[0] = (*x)[0];
  if (w) out[1] = (*w)[0];
  for (size_t i = 0; i < axes; ++i) {
    TREADLE_ASSIGN(const Dim kernel, kernel_size(window, i, w));
    if (!x) continue;
    TREADLE_ASSIGN(out[i + 2], window.positions(i, (*x)[i + 2], kernel));
  }
  ctx.set_output(0, element, std::move(out));
  return {};
}

Dims channels_second(const Dims& last) {
  Dims dims = last;
  std::rotate(dims.begin() + 1, dims.end() - 1, dims.end());
  return dims;
}

Dims channels_last(const Dims& second) {
  Dims dims = second;
  std::rotate(dims.begin() + 1, dims.begin() + 2, dims.end());
  return dims;
}

Status infer_channels_last(InferContext& ctx, InferFn infer, uint64_t inputs, bool y) {
  std::vector<Type> types(ctx.inputs.size());
  std::vector<const Type*> given(ctx.inputs.begin(), ctx.inputs.end());
  for (size_t i = 0; i < given.size(); ++i) {
    if ((inputs >> i & 1) == 0 || !ctx.shape(i) || ctx.shape(i)->size() < 3) continue;
    types[i] = *given[i];
    std::rotate(types[i].shape.begin() + 1, types[i].shape.end() - 1, types[i].shape.end());
    given[i] = &types[i];
  }
  const auto before = std::exchange(ctx.inputs, given);
  Status status = infer(ctx);
  ctx.inputs = before;
  Type& out = ctx.outputs[0];
  if (status.ok() && y && out.has_shape && out.shape.size() > 2) {
    std::rotate(out.shape.begin() + 1, out.shape.begin() + 2, out.shape.end());
  }
  return status;
}

Result<kernels::ConvShape> conv_shape(const PrepareContext& ctx, const Operand& x, const Operand& w) {
  return conv_shape(ctx.attributes(), x.dims, w.dims, ctx.outputs[0].dims);
}

Result<kernels::ConvShape> conv_shape(const ir::Attributes& attributes, const Dims& x, const Dims& w, const Dims& y) {
  TREADLE_ASSIGN(Window window, read_window(attributes, x.size() - 2));
  kernels::ConvShape shape;
  shape.axes = window.axes;
  shape.batch = x[0];
  shape.in_channels = x[1];
  shape.out_channels = w[0];
  shape.groups = attributes.get_int("group", 1);
  shape.input = spatial_sizes(x);
  shape.output = spatial_sizes(y);
  window.kernel = shape.kernel = spatial_sizes(w);
  window.resolve_pads(shape.input, shape.output);
  shape.stride = window.stride;
  shape.dilation = window.dilation;
  shape.pad_begin = window.pad_begin;
  return shape;
}

double multiply_adds(const kernels::ConvShape& shape) {
  double count = static_cast<double>(shape.batch * shape.out_channels) * static_cast<double>(shape.in_channels) /
                 static_cast<double>(std::max<int64_t>(shape.groups, 1));
  const kernels::Spatial& positions = shape.transposed ? shape.input : shape.output;
  for (size_t i = 0; i < static_cast<size_t>(shape.axes); ++i) {
    count *= static_cast<double>(positions[i]) * static_cast<double>(shape.kernel[i]);
  }
  return count;
}

uint64_t layout_key(const kernels::ConvShape& shape, std::string_view packing) {
  uint64_t key = 0;
  auto mix = [&](int64_t part) { key = (key ^ static_cast<uint64_t>(part)) * 0x9E37'79B9'7F4A'7C15u; };
  for (const char letter : packing) mix(letter);
  mix(shape.axes);
  mix(shape.in_channels);
  mix(shape.out_channels);
  mix(shape.groups);
  mix(shape.transposed);
  mix(static_cast<int64_t>(kernels::preferred_isa()));
  for (size_t i = 0; i < static_cast<size_t>(shape.axes); ++i) {
    mix(shape.kernel[i]);
  }
  return key;
}

void add_conv_attributes(VersionBuilder& version) {
  version.attr("auto_pad", "NOTSET")
      .optional("dilations", ir::AttributeKind::kInts)
      .attr("group", 1)
      .optional("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts);
}

}  // namespace treadle::nn
