// ConvTranspose: weights [C, M / group, kernel...]; what Conv does to gradients.

#include <algorithm>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/work.h"
#include "ops/nn/conv.h"
#include "ops/nn/window.h"

namespace treadle::nn {

namespace {

enum Input : size_t { kX, kW, kB };

struct Transposed {
  Window window;
  kernels::Spatial output_padding{};
  std::span<const int64_t> output_shape;  // of the spatial axes; empty: follows from the rest
};

Result<Transposed> read_transposed(const ir::Attributes& attributes, size_t axes) {
  Transposed t;
  TREADLE_ASSIGN(t.window, read_window(attributes, axes));
  const auto padding = attributes.get_ints("output_padding");
  if (!padding.empty() && padding.size() != axes) {
    return error(Code::kInvalidModel, "attribute output_padding has {} entries, expected {}", padding.size(), axes);
  }
  for (size_t i = 0; i < padding.size(); ++i) {
    if (padding[i] < 0 || padding[i] > INT32_MAX) {
      return error(Code::kInvalidModel, "attribute output_padding holds {}, expected at least 0", padding[i]);
    }
    // "Less than the corresponding stride/dilation dimension": which of the two, the document leaves open.
    const int64_t most = std::max(t.window.stride[i], t.window.dilation[i]) - 1;
    if (padding[i] > most) {
      return error(
          Code::kInvalidModel,
          "attribute output_padding holds {} for spatial axis {}, expected less than its stride or dilation, {}",
          padding[i], i, most + 1);
    }
    t.output_padding[i] = padding[i];
  }
  t.output_shape = attributes.get_ints("output_shape");
  // Some exporters name batch and channels as well.
  if (t.output_shape.size() == axes + 2) t.output_shape = t.output_shape.subspan(2);
  if (!t.output_shape.empty() && t.output_shape.size() != axes) {
    return error(Code::kInvalidModel, "attribute output_shape has {} entries, expected {}", t.output_shape.size(),
                 axes);
  }
  for (int64_t size : t.output_shape) {
    if (size < 0) return error(Code::kInvalidModel, "attribute output_shape holds {}, expected at least 0", size);
  }
  return t;
}

// Size along a spatial axis before pads are cut off.
Dim full_size(const Transposed& t, size_t axis, const Dim& input, const Dim& kernel) {
  return Dim(t.window.stride[axis]) * (input - Dim(1)) + Dim(t.output_padding[axis]) + t.window.extent(axis, kernel);
}

Result<Dim> output_size(const Transposed& t, size_t axis, const Dim& input, const Dim& kernel) {
  if (!t.output_shape.empty()) return Dim(t.output_shape[axis]);
  const AutoPad pad = t.window.auto_pad;
  if (pad == AutoPad::kSameUpper || pad == AutoPad::kSameLower) return input * Dim(t.window.stride[axis]);
  const Dim size = full_size(t, axis, input, kernel) - Dim(t.window.pad_begin[axis] + t.window.pad_end[axis]);
  if (size.is_known() && size.value() < 0) {
    return error(Code::kInvalidArgument,
                 "the pads of spatial axis {} are larger than the result by {}, expected at most its size", axis,
                 -size.value());
  }
  return size;
}

Status check_operands(const InferContext& ctx, const Shape* x, const Shape* w) {
  if (x && w && x->size() != w->size()) {
    return error(Code::kInvalidArgument, "x and the weights have shapes {} and {}, expected equal ranks", to_string(*x),
                 to_string(*w));
  }
  const int64_t group = ctx.attributes().get_int("group", 1);
  if (group < 1 || group > INT32_MAX) {
    return error(Code::kInvalidModel, "attribute group is {}, expected at least 1", group);
  }
  if (x && w && differ((*x)[1], (*w)[0])) {
    return error(Code::kInvalidArgument, "x has {} channels, expected the first size of the weights, whose shape is {}",
                 (*x)[1].to_string(), to_string(*w));
  }
  if (w && (*w)[0].is_known() && (*w)[0].value() % group != 0) {
    return error(Code::kInvalidArgument,
                 "the weights have {} input channels, expected a multiple of attribute group, {}", (*w)[0].value(),
                 group);
  }
  const Shape* bias = ctx.shape(kB);
  if (w && bias && (bias->size() != 1 || differ((*bias)[0], (*w)[1] * Dim(group)))) {
    return error(Code::kInvalidArgument, "the bias has shape {}, expected [{}]", to_string(*bias),
                 ((*w)[1] * Dim(group)).to_string());
  }
  return {};
}

Status infer_conv_transpose(InferContext& ctx) {
  const Shape *x = ctx.shape(kX), *w = ctx.shape(kW);
  if (!x && !w) return ctx.set_output(0, ctx.element(kX)), Status();
  TREADLE_ASSIGN(const size_t axes, spatial_axes(x ? *x : *w, x ? "x" : "the weights"));
  TREADLE_TRY(check_operands(ctx, x, w));
  TREADLE_ASSIGN(const Transposed t, read_transposed(ctx.attributes(), axes));
  Shape out(axes + 2, Dim::unknown());
  if (x) out[0] = (*x)[0];
  if (w) {
    out[1] = (*w)[1] * Dim(ctx.attributes().get_int("group", 1));
    if ((*w)[1].is_known() && !out[1].is_known()) {
      return error(Code::kInvalidArgument, "weights of shape {} make too many channels, expected at most 2^63 - 1",
                   to_string(*w));
    }
  }
  for (size_t i = 0; i < axes; ++i) {
    TREADLE_ASSIGN(const Dim kernel, kernel_size(t.window, i, w));
    TREADLE_ASSIGN(out[i + 2], output_size(t, i, x ? (*x)[i + 2] : Dim::unknown(), kernel));
  }
  ctx.set_output(0, ctx.element(kX), std::move(out));
  return {};
}

// Where output_shape or auto_pad ask for a size, pads are what is over, halved; an odd one goes to the end for
// SAME_UPPER and to the beginning otherwise.
int64_t pad_begin(const Transposed& t, size_t axis, int64_t full, int64_t output) {
  const AutoPad pad = t.window.auto_pad;
  const bool same = pad == AutoPad::kSameUpper || pad == AutoPad::kSameLower;
  if (t.output_shape.empty() && !same) return t.window.pad_begin[axis];
  const int64_t total = std::max<int64_t>(0, full - output);
  return pad == AutoPad::kSameUpper ? total / 2 : total - total / 2;
}

bool is_nhwc(const ir::Attributes& attributes, const char* operand) {
  return attributes.get_int(operand, 0) != 0;
}

Status infer_transposed_last(InferContext& ctx) {
  return infer_channels_last(ctx, infer_conv_transpose, is_nhwc(ctx.attributes(), "x_nhwc") ? 1 << kX : 0,
                             is_nhwc(ctx.attributes(), "y_nhwc"));
}

Status prepare_conv_transpose(PrepareContext& ctx) {
  const bool x_nhwc = is_nhwc(ctx.attributes(), "x_nhwc"), y_nhwc = is_nhwc(ctx.attributes(), "y_nhwc");
  const Dims &x = ctx.inputs[kX].dims, &y = ctx.outputs[0].dims;
  TREADLE_ASSIGN(kernels::ConvShape shape, transposed_shape(ctx.attributes(), x_nhwc ? channels_second(x) : x,
                                                            ctx.inputs[kW].dims, y_nhwc ? channels_second(y) : y));
  shape.x_nhwc = x_nhwc;
  shape.y_nhwc = y_nhwc;
  return prepare_conv(ctx, shape);
}

// Each element of the input meets the filters of its channel: [channels, filters, ...].
Work transposed_conv_work(const ir::Node& node) {
  const double channels = std::max(
      work::elements_of(node.inputs[1]) > 0 ? static_cast<double>(node.inputs[1]->type.shape[0].value()) : 1, 1.0);
  return {.flops = 2 * work::elements_of(node.inputs[0]) * work::elements_of(node.inputs[1]) / channels};
}

}  // namespace

Result<kernels::ConvShape> transposed_shape(const ir::Attributes& attributes, const Dims& x, const Dims& w,
                                            const Dims& y) {
  const size_t axes = x.size() - 2;
  TREADLE_ASSIGN(const Transposed t, read_transposed(attributes, axes));
  kernels::ConvShape shape;
  shape.axes = static_cast<int>(axes);
  shape.transposed = true;
  shape.batch = x[0];
  shape.in_channels = x[1];
  shape.groups = attributes.get_int("group", 1);
  shape.out_channels = w[1] * shape.groups;
  shape.input = spatial_sizes(x);
  shape.output = spatial_sizes(y);
  shape.kernel = spatial_sizes(w);
  shape.stride = t.window.stride;
  shape.dilation = t.window.dilation;
  for (size_t i = 0; i < axes; ++i) {
    const int64_t full = full_size(t, i, Dim(shape.input[i]), Dim(shape.kernel[i])).value();
    shape.pad_begin[i] = pad_begin(t, i, full, shape.output[i]);
  }
  return shape;
}

}  // namespace treadle::nn

TREADLE_OP(ConvTranspose, "") {
  op.since(1)
      .in("X", "T")
      .in("W", "T")
      .in("B", "T", Arity::kOptional)
      .out("Y", "T")
      .with(nn::add_conv_attributes)
      .optional("output_padding", ir::AttributeKind::kInts)
      .optional("output_shape", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(11);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_conv_transpose)
      .prepare(nn::prepare_conv_transpose)
      .axes(axes::entries)
      .over_time(TimeRule::kTransposedWindow)
      .work(nn::transposed_conv_work);
}

// ConvTranspose; with `x_nhwc` x, with `y_nhwc` y has its channels last: what opt::lay_channels_last makes.
TREADLE_OP(TransposedConvLast, "treadle") {
  op.since(1)
      .in("X", "T")
      .in("W", "T")
      .in("B", "T", Arity::kOptional)
      .out("Y", "T")
      .with(nn::add_conv_attributes)
      .optional("output_padding", ir::AttributeKind::kInts)
      .optional("output_shape", ir::AttributeKind::kInts)
      .optional("x_nhwc", ir::AttributeKind::kInt)
      .optional("y_nhwc", ir::AttributeKind::kInt)
      .type("T", tensors(ElementType::kFloat));
  op.infer(nn::infer_transposed_last)
      .prepare(nn::prepare_conv_transpose)
      .axes(axes::entries)
      .work(nn::transposed_conv_work);
}
