// Conv, its fused form, and the kernel that they share with ConvTranspose.

#include "ops/nn/conv.h"

#include <algorithm>
#include <new>
#include <vector>

#include "kernels/conv_folded.h"
#include "kernels/dispatch.h"
#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/nn/window.h"

namespace treadle::nn {

namespace {

enum Input : size_t { kX, kW, kB, kAddend };

struct ConvState {
  kernels::ConvPlan plan;
  WideOperand x, w, bias;
  const void* packed = nullptr;  // constant weights
  void* table = nullptr;
  kernels::TileConverter narrow;  // of the result
  bool narrows = false;
  size_t count = 0;                                // elements of the result
  size_t packed_at = 0, wide_at = 0, conv_at = 0;  // in scratch: weights, result, the kernel's own
  size_t conv_bytes = 0;                           // of the kernel's own, for each thread
  double unit_ns = 0;
  uint32_t output = 0;
};

uint32_t run_conv(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ConvState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.output + 1]]);
  const auto input = [&](size_t i) { return i < s.output ? slots[operands[i]] : nullptr; };
  const void* weights = s.packed;
  if (!weights) {
    kernels::pack_conv_weights(s.plan, s.w.get(input(kW), scratch), scratch + s.packed_at);
    if (was_stopped()) return fail(KernelError::kStopped);
    weights = scratch + s.packed_at;
  }
  const void* bias = input(kB) ? s.bias.get(input(kB), scratch) : nullptr;
  void* y = slots[operands[s.output]];
  void* wide = s.narrows ? scratch + s.wide_at : y;
  const void* x = s.x.get(input(kX), scratch);
  const void* addend = input(kAddend);
  parallel_for(s.plan.units, s.unit_ns, [&](int64_t begin, int64_t end, int worker) {
    std::byte* own = scratch + s.conv_at + static_cast<size_t>(worker) * s.conv_bytes;
    kernels::run_conv_range(s.plan, {x, weights, bias, wide, own, addend, s.table}, begin, end);
  });
  if (s.narrows) parallel_convert(s.narrow, wide, y, s.count);
  return 0;
}

// One entry per arrangement of the same constant, whatever the size of the input.
uint64_t packed_layout(const kernels::ConvPlan& plan) {
  uint64_t key = layout_key(plan.shape, plan.packing);
  for (int i = 0; plan.cuts && i < plan.given_axes; ++i) {
    const auto axis = static_cast<size_t>(i);
    for (const int64_t part : {plan.first_tap[axis], plan.kept[axis]}) {
      key = (key ^ static_cast<uint64_t>(part + 1)) * 0x9E37'79B9'7F4A'7C15u;
    }
  }
  return key;
}

Result<const void*> pack_constant(PrepareContext& ctx, const ConvState& s, ElementType wide) {
  const Operand& w = ctx.inputs[kW];
  return ctx.packs.get(w, packed_layout(s.plan), s.plan.packed_weight_bytes,
                       [&](void* out) { kernels::pack_conv_weights(s.plan, WideConstant(w, wide).data(), out); });
}

// How constant weights fold; null where that does not pay. One look for all sizes of the input.
Result<const kernels::Fold*> fold_constant(PrepareContext& ctx, const kernels::ConvShape& shape, ElementType wide) {
  const Operand& w = ctx.inputs[kW];
  if (w.constant == nullptr || !kernels::may_fold(shape)) return nullptr;
  const uint64_t layout = layout_key(shape, "fold");
  const auto look = [&](void* out) {
    new (out) kernels::Fold(kernels::fold_weights(compute_type(wide), shape, WideConstant(w, wide).data()));
  };
  TREADLE_ASSIGN(const void* const fold, ctx.packs.get(w, layout, sizeof(kernels::Fold), look));
  const auto* found = static_cast<const kernels::Fold*>(fold);
  return kernels::pays(*found, shape) ? found : nullptr;
}

// Of f32. Each element that a depthwise kernel reads serves one channel alone.
double multiply_add_ns(const kernels::ConvShape& shape) {
  return shape.groups > 1 && shape.in_channels == shape.groups ? 0.05 : 0.025;
}

}  // namespace

Status prepare_conv(PrepareContext& ctx, const kernels::ConvShape& shape, const ConvEpilogue& epilogue) {
  auto* s = ctx.make_state<ConvState>();
  const Operand& y = ctx.outputs[0];
  const ElementType wide = wide_type(y.type);
  s->plan = kernels::prepare_conv(compute_type(wide), shape);
  const kernels::Fold* fold = nullptr;
  if (!s->plan.cuts && !shape.x_nhwc && !shape.y_nhwc) {
    TREADLE_ASSIGN(fold, fold_constant(ctx, s->plan.shape, wide));
  }
  if (fold != nullptr) kernels::fold_conv(s->plan, *fold);
  s->plan.clamp = epilogue.clamp;
  s->table = ctx.arena.allocate(s->plan.table_bytes);
  if (fold != nullptr) {
    kernels::make_folded_table(s->plan, *fold, s->table);
  } else {
    kernels::make_conv_table(s->plan, s->table);
  }
  s->output = static_cast<uint32_t>(ctx.inputs.size());
  ScratchLayout scratch;
  TREADLE_TRY(s->x.prepare(ctx.inputs[kX], wide, scratch));
  if (ctx.has_input(kB)) TREADLE_TRY(s->bias.prepare(ctx.inputs[kB], wide, scratch));
  if (ctx.inputs[kW].constant) {
    TREADLE_ASSIGN(s->packed, pack_constant(ctx, *s, wide));
  } else {
    TREADLE_TRY(s->w.prepare(ctx.inputs[kW], wide, scratch));
    s->packed_at = scratch.add(s->plan.packed_weight_bytes);
  }
  s->count = static_cast<size_t>(y.element_count());
  s->narrows = y.type != wide;
  if (s->narrows) {
    s->narrow = kernels::make_converter(wide, y.type);
    s->wide_at = scratch.add(s->count * byte_width(wide));
  }
  ctx.cost_ns = multiply_adds(shape) * multiply_add_ns(shape) * (wide == ElementType::kDouble ? 2 : 1);
  if (fold != nullptr) ctx.cost_ns *= fold->share();
  s->unit_ns = ctx.cost_ns / static_cast<double>(std::max<int64_t>(s->plan.units, 1));
  s->conv_bytes = (s->plan.scratch_bytes + 63) / 64 * 64;
  s->conv_at = scratch.add(s->conv_bytes * scratch_parts(s->plan.units, s->unit_ns, ctx.threads));
  ctx.scratch_bytes = std::max<size_t>(scratch.size(), 64);
  ctx.set_kernel(run_conv, s, nullptr, s->plan.method);
  return {};
}

namespace {

Status infer_plain_conv(InferContext& ctx) {
  return infer_conv(ctx, kX, kW, kB, ctx.element(kX));
}

Status prepare_plain_conv(PrepareContext& ctx) {
  TREADLE_ASSIGN(const kernels::ConvShape shape, conv_shape(ctx, ctx.inputs[kX], ctx.inputs[kW]));
  return prepare_conv(ctx, shape);
}

bool is_nhwc(const ir::Attributes& attributes, const char* operand) {
  return attributes.get_int(operand, 0) != 0;
}

Status infer_fused_conv(InferContext& ctx) {
  const ir::Attributes& attributes = ctx.attributes();
  return infer_channels_last(ctx, infer_plain_conv, is_nhwc(attributes, "x_nhwc") ? 1 << kX : 0,
                             is_nhwc(attributes, "y_nhwc"));
}

Status prepare_fused_conv(PrepareContext& ctx) {
  const bool x_nhwc = is_nhwc(ctx.attributes(), "x_nhwc"), y_nhwc = is_nhwc(ctx.attributes(), "y_nhwc");
  const Dims &x = ctx.inputs[kX].dims, &y = ctx.outputs[0].dims;
  TREADLE_ASSIGN(kernels::ConvShape shape, conv_shape(ctx.attributes(), x_nhwc ? channels_second(x) : x,
                                                      ctx.inputs[kW].dims, y_nhwc ? channels_second(y) : y));
  shape.x_nhwc = x_nhwc;
  shape.y_nhwc = y_nhwc;
  ConvEpilogue epilogue;
  epilogue.clamp.low = ctx.attributes().get_float("low", epilogue.clamp.low);
  epilogue.clamp.high = ctx.attributes().get_float("high", epilogue.clamp.high);
  return prepare_conv(ctx, shape, epilogue);
}

}  // namespace

}  // namespace treadle::nn

TREADLE_OP(Conv, "") {
  op.since(1)
      .in("X", "T")
      .in("W", "T")
      .in("B", "T", Arity::kOptional)
      .out("Y", "T")
      .with(nn::add_conv_attributes)
      .type("T", types::kFloats);
  op.since(11);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_plain_conv)
      .prepare(nn::prepare_plain_conv)
      .axes(axes::entries)
      .over_time(TimeRule::kWindow)
      .product(Product::kConvolution)
      .work(work::convolution<1>);
}

// Conv, plus `addend` (of y's sizes), cut off at `low` and `high`: what opt::fuse_convolutions makes. With `x_nhwc` x,
// with `y_nhwc` y and the addend have their channels last: [N, spatial..., C].
TREADLE_OP(FusedConv, "treadle") {
  op.since(1)
      .in("X", "T")
      .in("W", "T")
      .in("B", "T", Arity::kOptional)
      .in("addend", "T", Arity::kOptional)
      .out("Y", "T")
      .with(nn::add_conv_attributes)
      .optional("high", ir::AttributeKind::kFloat)
      .optional("low", ir::AttributeKind::kFloat)
      .optional("x_nhwc", ir::AttributeKind::kInt)
      .optional("y_nhwc", ir::AttributeKind::kInt)
      .type("T", types::kFloatsBf16);
  op.infer(nn::infer_fused_conv)
      .prepare(nn::prepare_fused_conv)
      .axes(axes::entries_of<0b1001>)
      .product(Product::kConvolution)
      .work(work::convolution<1>);
}
