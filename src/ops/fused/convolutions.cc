// Conv with an addend and an activation, and operators on NHWC tensors: NhwcConv, NhwcFusedConv, NhwcMaxPool.

#include <array>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/registry.h"
#include "op/work.h"
#include "ops/fused/activation.h"
#include "ops/fused/calls.h"
#include "ops/nn/window.h"

namespace treadle::fused {

namespace {

enum Input : size_t { kX, kW, kB, kZ };

Status infer_conv(InferContext& ctx) {
  return nn::infer_conv(ctx, kX, kW, kB, ctx.element(kX));
}

// The addend must have the result's sizes.
Status infer_fused(InferContext& ctx, Status (*infer)(InferContext&)) {
  TREADLE_TRY(read_activation(ctx.attributes()).check());
  TREADLE_TRY(infer(ctx));
  const Shape* z = ctx.shape(kZ);
  if (!z || !ctx.outputs[0].has_shape) return {};
  const Shape& y = ctx.outputs[0].shape;
  bool fits = z->size() == y.size();
  for (size_t i = 0; fits && i < y.size(); ++i) fits = !differ((*z)[i], y[i]);
  if (fits) return {};
  return error(Code::kInvalidArgument, "Z has shape {}, expected that of Y {}", to_string(*z), to_string(y));
}

Status infer_fused_conv(InferContext& ctx) {
  return infer_fused(ctx, infer_conv);
}

Status infer_conv_last(InferContext& ctx) {
  return nn::infer_channels_last(ctx, infer_conv, 1 << kX, true);
}

Status infer_fused_conv_last(InferContext& ctx) {
  return infer_fused(ctx, infer_conv_last);
}

Status infer_pool_nhwc(InferContext& ctx) {
  return nn::infer_channels_last(ctx, require_op("MaxPool", "").infer, 1 << kX, true);
}

// The node's attributes of a window.
std::vector<ir::Attribute> window_attributes(const ir::Attributes& attributes) {
  std::vector<ir::Attribute> window;
  for (const char* list : {"kernel_shape", "strides", "dilations", "pads"}) {
    const auto values = attributes.get_ints(list);
    if (!values.empty()) window.push_back(ir::Attribute::of(list, std::vector<int64_t>(values.begin(), values.end())));
  }
  for (const char* number : {"group", "ceil_mode"}) {
    if (attributes.has(number)) window.push_back(ir::Attribute::of(number, attributes.get_int(number)));
  }
  window.push_back(ir::Attribute::of("auto_pad", std::string(attributes.get_string("auto_pad"))));
  return window;
}

// NCHW to NHWC, or back.
ir::Value* moved(LowerContext& ctx, ir::Value* v, int64_t from, int64_t to) {
  return ctx.call("MoveAxis", {v}, {ir::Attribute::of("from", from), ir::Attribute::of("to", to)}, "treadle");
}

template <bool kLast>
Status lower_conv(LowerContext& ctx) {
  ir::Value* x = kLast ? moved(ctx, ctx.input(kX), -1, 1) : ctx.input(kX);
  ir::Value* y = ctx.call("Conv", {x, ctx.input(kW), optional_input(ctx, kB)}, window_attributes(ctx.attributes()));
  if (kLast) y = moved(ctx, y, 1, -1);
  if (ctx.has_input(kZ)) y = ctx.call("Add", {y, ctx.input(kZ)});
  ctx.set_output(0, read_activation(ctx.attributes()).apply(ctx, y, ctx.type(kX).element));
  return {};
}

Status lower_pool_last(LowerContext& ctx) {
  ir::Value* y = ctx.call("MaxPool", {moved(ctx, ctx.input(kX), -1, 1)}, window_attributes(ctx.attributes()));
  ctx.set_output(0, moved(ctx, y, 1, -1));
  return {};
}

void add_conv(VersionBuilder& v) {
  v.in("X", "T").in("W", "T").in("B", "T", Arity::kOptional);
  nn::add_conv_attributes(v);
}

void add_fusion(VersionBuilder& v) {
  v.in("Z", "T", Arity::kOptional)
      .optional("activation", ir::AttributeKind::kString)
      .optional("activation_params", ir::AttributeKind::kFloats);
}

}  // namespace

}  // namespace treadle::fused

TREADLE_OP(FusedConv, "com.microsoft") {
  op.since(1).with(fused::add_conv).with(fused::add_fusion).out("Y", "T").type("T", types::kFloats);
  op.infer(fused::infer_fused_conv)
      .lower(fused::lower_conv<false>)
      .axes(axes::entries_of<0b1001>)
      .product(Product::kConvolution)
      .work(work::convolution<1>);
}

TREADLE_OP(NhwcConv, "com.microsoft") {
  op.since(1).with(fused::add_conv).out("Y", "T").type("T", types::kFloats);
  op.infer(fused::infer_conv_last)
      .lower(fused::lower_conv<true>)
      .axes(axes::entries)
      .product(Product::kConvolution)
      .work(work::convolution<1>);
}

TREADLE_OP(NhwcFusedConv, "com.microsoft") {
  op.since(1)
      .with(fused::add_conv)
      .with(fused::add_fusion)
      .out("Y", "T")
      .type("T", tensors(ElementType::kFloat16, ElementType::kFloat));
  op.infer(fused::infer_fused_conv_last)
      .lower(fused::lower_conv<true>)
      .axes(axes::entries_of<0b1001>)
      .product(Product::kConvolution)
      .work(work::convolution<1>);
}

TREADLE_OP(NhwcMaxPool, "com.microsoft") {
  op.since(1)
      .in("x", "T")
      .out("y", "T")
      .attr("auto_pad", "NOTSET")
      .attr("ceil_mode", 0)
      .optional("dilations", ir::AttributeKind::kInts)
      .required("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", types::kBytes);
  op.infer(fused::infer_pool_nhwc).lower(fused::lower_pool_last).axes(axes::entries);
}
