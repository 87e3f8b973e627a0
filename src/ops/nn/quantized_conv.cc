// ConvInteger and QLinearConv: 8-bit operands, exact sums.

#include <algorithm>

#include "kernels/dispatch.h"
#include "kernels/qgemm.h"
#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/nn/window.h"

namespace treadle::nn {

namespace {

// Input indices of the operands that both have; -1: none.
struct Roles {
  int x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias;
};
constexpr Roles kInteger{0, -1, 2, 1, -1, 3, -1, -1, -1};
constexpr Roles kLinear{0, 1, 2, 3, 4, 5, 6, 7, 8};
constexpr Roles kScaled{0, 4, 2, 1, 5, 3, 7, 8, 6};

struct QuantizedConv {
  Roles roles{};
  kernels::QConvPlan plan;
  kernels::QGemmEpilogue epilogue;
  const void* packed = nullptr;
  size_t packed_at = 0, conv_at = 0;
  size_t conv_bytes = 0;  // for each thread
  double unit_ns = 0;
  bool y_signed = false;
  bool float_bias = false;
  uint32_t output = 0;
};

uint32_t run_quantized_conv(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const QuantizedConv*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.output + 1]]);
  const auto input = [&](int role) -> const void* {
    return role >= 0 && static_cast<uint32_t>(role) < s.output ? slots[operands[role]] : nullptr;
  };
  const void* weights = s.packed;
  if (!weights) {
    kernels::pack_qconv_weights(s.plan, input(s.roles.w), scratch + s.packed_at);
    if (was_stopped()) return fail(KernelError::kStopped);
    weights = scratch + s.packed_at;
  }
  kernels::QGemmEpilogue epilogue = s.epilogue;
  if (s.float_bias) {
    epilogue.float_bias = static_cast<const float*>(input(s.roles.bias));
  } else {
    epilogue.bias = static_cast<const int32_t*>(input(s.roles.bias));
  }
  epilogue.a_scale = static_cast<const float*>(input(s.roles.x_scale));
  epilogue.b_scale = static_cast<const float*>(input(s.roles.w_scale));
  epilogue.c_scale = static_cast<const float*>(input(s.roles.y_scale));
  if (const void* zero = input(s.roles.y_zero)) {
    epilogue.c_zero = s.y_signed ? int32_t{*static_cast<const int8_t*>(zero)} : *static_cast<const uint8_t*>(zero);
  }
  parallel_for(s.plan.units, s.unit_ns, [&](int64_t begin, int64_t end, int worker) {
    s.plan.run(s.plan,
               {input(s.roles.x), weights, input(s.roles.x_zero), input(s.roles.w_zero), slots[operands[s.output]],
                scratch + s.conv_at + static_cast<size_t>(worker) * s.conv_bytes},
               epilogue, begin, end);
  });
  return 0;
}

uint64_t packed_layout(const kernels::QConvPlan& plan) {
  return nn::layout_key(plan.shape.conv, plan.packing) + (plan.shape.w_signed ? 1 : 0);
}

Status prepare_quantized_conv(PrepareContext& ctx, const Roles& roles) {
  auto* s = ctx.make_state<QuantizedConv>();
  const auto operand = [&](int role) -> const Operand& { return ctx.inputs[static_cast<size_t>(role)]; };
  const auto has = [&](int role) { return role >= 0 && ctx.has_input(static_cast<size_t>(role)); };
  const Operand &x = operand(roles.x), &w = operand(roles.w);
  kernels::QConvShape shape;
  TREADLE_ASSIGN(shape.conv, conv_shape(ctx, x, w));
  shape.x_signed = x.type == ElementType::kInt8;
  shape.w_signed = w.type == ElementType::kInt8;
  shape.w_zero_per_channel = has(roles.w_zero) && operand(roles.w_zero).element_count() > 1;
  s->roles = roles;
  s->plan = kernels::prepare_qconv(shape);
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  const ElementType y = ctx.outputs[0].type;
  s->y_signed = y == ElementType::kInt8;
  s->epilogue.output = y == ElementType::kInt32   ? kernels::QGemmOutput::kInt32
                       : y == ElementType::kFloat ? kernels::QGemmOutput::kScaled
                       : y == ElementType::kInt8  ? kernels::QGemmOutput::kInt8
                                                  : kernels::QGemmOutput::kUint8;
  s->epilogue.b_scale_per_column = has(roles.w_scale) && operand(roles.w_scale).element_count() > 1;
  s->float_bias = has(roles.bias) && operand(roles.bias).type == ElementType::kFloat;
  s->epilogue.divides = &roles == &kScaled;
  if (&roles == &kScaled) {
    s->epilogue.low = ctx.attributes().get_float("low", s->epilogue.low);
    s->epilogue.high = ctx.attributes().get_float("high", s->epilogue.high);
  }
  ScratchLayout scratch;
  if (w.constant) {
    const auto pack = [&](void* out) { kernels::pack_qconv_weights(s->plan, w.constant, out); };
    TREADLE_ASSIGN(s->packed, ctx.packs.get(w, packed_layout(s->plan), s->plan.packed_weight_bytes, pack));
  } else {
    s->packed_at = scratch.add(s->plan.packed_weight_bytes);
  }
  ctx.cost_ns = multiply_adds(shape.conv) * 0.015;
  s->unit_ns = ctx.cost_ns / static_cast<double>(std::max<int64_t>(s->plan.units, 1));
  s->conv_bytes = (s->plan.scratch_bytes + 63) / 64 * 64;
  s->conv_at = scratch.add(s->conv_bytes * scratch_parts(s->plan.units, s->unit_ns, ctx.threads));
  ctx.scratch_bytes = std::max<size_t>(scratch.size(), 64);
  ctx.set_kernel(run_quantized_conv, s, nullptr, s->plan.method);
  return {};
}

// One element, or one per output channel where `per_channel`.
Status check_parameter(const InferContext& ctx, int index, std::string_view what, const Dim& channels,
                       bool per_channel) {
  const Shape* shape = index < 0 ? nullptr : ctx.shape(static_cast<size_t>(index));
  if (!shape) return {};
  const Dim count = element_count(*shape);
  if (shape->size() <= 1 && (!differ(count, Dim(1)) || (per_channel && !differ(count, channels)))) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected one element{}", what, to_string(*shape),
               per_channel ? fmt::format(" or [{}]", channels.to_string()) : std::string());
}

Status infer_quantized_conv(InferContext& ctx, const Roles& roles, ElementType element) {
  const Shape* w = ctx.shape(static_cast<size_t>(roles.w));
  const Dim channels = w && !w->empty() ? (*w)[0] : Dim::unknown();
  TREADLE_TRY(check_parameter(ctx, roles.x_scale, "the scale of x", channels, false));
  TREADLE_TRY(check_parameter(ctx, roles.x_zero, "the zero point of x", channels, false));
  TREADLE_TRY(check_parameter(ctx, roles.w_scale, "the scale of the weights", channels, true));
  TREADLE_TRY(check_parameter(ctx, roles.w_zero, "the zero point of the weights", channels, true));
  TREADLE_TRY(check_parameter(ctx, roles.y_scale, "the scale of y", channels, false));
  TREADLE_TRY(check_parameter(ctx, roles.y_zero, "the zero point of y", channels, false));
  constexpr auto kNone = static_cast<size_t>(-1);
  return infer_conv(ctx, static_cast<size_t>(roles.x), static_cast<size_t>(roles.w),
                    roles.bias < 0 ? kNone : static_cast<size_t>(roles.bias), element);
}

Status infer_conv_integer(InferContext& ctx) {
  return infer_quantized_conv(ctx, kInteger, ElementType::kInt32);
}
Status prepare_conv_integer(PrepareContext& ctx) {
  return prepare_quantized_conv(ctx, kInteger);
}
Status infer_qlinear_conv(InferContext& ctx) {
  return infer_quantized_conv(ctx, kLinear, ctx.element(static_cast<size_t>(kLinear.y_zero)));
}
Status prepare_qlinear_conv(PrepareContext& ctx) {
  return prepare_quantized_conv(ctx, kLinear);
}

Status infer_scaled_conv(InferContext& ctx) {
  const ElementType quantized = ctx.element(static_cast<size_t>(kScaled.y_zero));
  return infer_quantized_conv(ctx, kScaled, quantized == ElementType::kUndefined ? ElementType::kFloat : quantized);
}
Status prepare_scaled_conv(PrepareContext& ctx) {
  return prepare_quantized_conv(ctx, kScaled);
}

}  // namespace

}  // namespace treadle::nn

// y = float(sum) * (x_scale * w_scale) + bias for the sums of ConvInteger, each step rounded, kept within [low, high];
// with y_scale and y_zero quantised as QuantizeLinear does. w_scale: one for all, or one for each output channel.
TREADLE_OP(ScaledConvInteger, "treadle") {
  op.since(1)
      .in("x", "T1")
      .in("w", "T2")
      .in("x_zero_point", "T1", Arity::kOptional)
      .in("w_zero_point", "T2", Arity::kOptional)
      .in("x_scale", "tensor(float)")
      .in("w_scale", "tensor(float)")
      .in("bias", "tensor(float)", Arity::kOptional)
      .in("y_scale", "tensor(float)", Arity::kOptional)
      .in("y_zero_point", "T3", Arity::kOptional)
      .out("y", "T4")
      .with(nn::add_conv_attributes)
      .optional("low", ir::AttributeKind::kFloat)
      .optional("high", ir::AttributeKind::kFloat)
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", types::kBytes)
      .type("T4", types::kBytes | types::kFloat32s);
  op.infer(nn::infer_scaled_conv)
      .prepare(nn::prepare_scaled_conv)
      .axes(axes::entries)
      .product(Product::kConvolution)
      .work(work::convolution<1>);
}

TREADLE_OP(QLinearConv, "") {
  op.since(10)
      .in("x", "T1")
      .in("x_scale", "tensor(float)")
      .in("x_zero_point", "T1")
      .in("w", "T2")
      .in("w_scale", "tensor(float)")
      .in("w_zero_point", "T2")
      .in("y_scale", "tensor(float)")
      .in("y_zero_point", "T3")
      .in("B", "T4", Arity::kOptional)
      .out("y", "T3")
      .with(nn::add_conv_attributes)
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", types::kBytes)
      .type("T4", types::kInt32s);
  op.infer(nn::infer_qlinear_conv)
      .prepare(nn::prepare_qlinear_conv)
      .axes(axes::entries)
      .over_time(TimeRule::kWindow)
      .product(Product::kConvolution, 0, 3)
      .work(work::convolution<3>);
}

TREADLE_OP(ConvInteger, "") {
  op.since(10)
      .in("x", "T1")
      .in("w", "T2")
      .in("x_zero_point", "T1", Arity::kOptional)
      .in("w_zero_point", "T2", Arity::kOptional)
      .out("y", "T3")
      .with(nn::add_conv_attributes)
      .type("T1", types::kBytes)
      .type("T2", types::kBytes)
      .type("T3", types::kInt32s);
  op.infer(nn::infer_conv_integer)
      .prepare(nn::prepare_conv_integer)
      .axes(axes::entries)
      .over_time(TimeRule::kWindow)
      .product(Product::kConvolution)
      .work(work::convolution<1>);
}
