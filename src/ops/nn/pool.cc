// MaxPool, AveragePool, LpPool and their global forms.

#include "kernels/pool.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/costs.h"
#include "op/axis_rules.h"
#include "op/gemm.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "ops/costs.h"
#include "ops/nn/window.h"

namespace treadle::nn {

namespace {

using kernels::PoolKind;

// Attribute p: an int, in version 1 a float.
Result<int> read_p(const ir::Attributes& attributes) {
  const ir::Attribute* p = attributes.find("p");
  if (!p) return 2;
  const double value =
      p->kind == ir::AttributeKind::kFloat ? static_cast<double>(p->as_float()) : static_cast<double>(p->as_int());
  if (value >= 1 && value <= 1 << 20 && value == static_cast<double>(static_cast<int>(value))) {
    return static_cast<int>(value);
  }
  return error(Code::kInvalidModel, "attribute p is {}, expected a whole number of at least 1", value);
}

// Conversions of x and y if the kernel computes in another type than that of storage.
struct Conversion {
  WideOperand x;
  kernels::TileConverter narrow;
  bool narrows = false;
  size_t count = 0, wide_at = 0;

  Status prepare(PrepareContext& ctx, ElementType wide) {
    ScratchLayout scratch;
    const Operand& y = ctx.outputs[0];
    TREADLE_TRY(x.prepare(ctx.inputs[0], wide, scratch));
    narrows = y.type != wide;
    count = static_cast<size_t>(y.element_count());
    if (narrows) {
      narrow = kernels::make_converter(wide, y.type);
      wide_at = scratch.add(count * byte_width(wide));
    }
    ctx.scratch_bytes = std::max<size_t>(scratch.size(), 64);
    return {};
  }
  template <class Fn>
  void run(const void* in, void* out, std::byte* scratch, Fn&& pool) const {
    void* wide = narrows ? scratch + wide_at : out;
    pool(x.get(in, scratch), wide);
    if (narrows) parallel_convert(narrow, wide, out, count);
  }
};

ElementType pool_type(ElementType type) {
  return is_float(type) && type != ElementType::kDouble ? ElementType::kFloat : type;
}

// ---------------------------------------------------------------------------------------------------------------------

Status infer_pool(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  for (size_t i = 0; i < ctx.outputs.size(); ++i) {
    ctx.set_output(i, i == 0 ? ctx.element(0) : ElementType::kInt64);
  }
  if (!x) return {};
  TREADLE_ASSIGN(const size_t axes, spatial_axes(*x, "x"));
  TREADLE_ASSIGN(const Window window, read_window(ctx.attributes(), axes));
  if (!window.has_kernel) return error(Code::kInvalidModel, "attribute kernel_shape is missing");
  Shape out = *x;
  for (size_t i = 0; i < axes; ++i) {
    TREADLE_ASSIGN(out[i + 2], window.positions(i, (*x)[i + 2], Dim(window.kernel[i])));
  }
  if (ctx.outputs.size() > 1) ctx.set_output(1, ElementType::kInt64, out);
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

struct PoolState {
  PoolKind kind = PoolKind::kMax;
  ElementType type = ElementType::kFloat;
  kernels::PoolShape shape;
  Conversion conversion;
  bool has_indices = false;
  uint32_t outputs = 1;
  double plane_ns = 0;
};

uint32_t run_pool(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const PoolState*>(state);
  auto* indices = s.has_indices ? static_cast<int64_t*>(slots[operands[2]]) : nullptr;
  auto* scratch = static_cast<std::byte*>(slots[operands[1 + s.outputs]]);
  s.conversion.run(slots[operands[0]], slots[operands[1]], scratch, [&](const void* x, void* y) {
    parallel_for(s.shape.batch * s.shape.channels, s.plane_ns, [&](int64_t begin, int64_t end, int) {
      kernels::run_pool(s.kind, s.type, s.shape, x, y, indices, begin, end);
    });
  });
  return 0;
}

PoolKind average_kind(const ir::Attributes& attributes) {
  return attributes.get_int("count_include_pad", 0) != 0 ? PoolKind::kAverageWithPads : PoolKind::kAverage;
}

Status prepare_pool(PrepareContext& ctx, PoolKind kind) {
  const Operand& x = ctx.inputs[0];
  auto* s = ctx.make_state<PoolState>();
  s->kind = kind;
  s->type = pool_type(x.type);
  TREADLE_ASSIGN(s->shape, pool_shape(ctx.attributes(), x.dims, ctx.outputs[0].dims));
  if (kind == PoolKind::kLp) {
    TREADLE_ASSIGN(s->shape.p, read_p(ctx.attributes()));
  }
  s->plane_ns = costs::kPoolTapNs;
  const kernels::PoolShape read = kernels::narrowed(s->shape);
  for (size_t i = 0; i < static_cast<size_t>(read.axes); ++i) {
    s->plane_ns *= static_cast<double>(read.output[i]) * static_cast<double>(read.kernel[i]);
  }
  ctx.cost_ns = s->plane_ns * static_cast<double>(s->shape.batch * s->shape.channels);
  s->has_indices = ctx.has_output(1);
  s->outputs = static_cast<uint32_t>(ctx.outputs.size());
  TREADLE_TRY(s->conversion.prepare(ctx, s->type));
  ctx.set_kernel(run_pool, s);
  return {};
}

Status prepare_max_pool(PrepareContext& ctx) {
  return prepare_pool(ctx, PoolKind::kMax);
}
Status prepare_average_pool(PrepareContext& ctx) {
  return prepare_pool(ctx, average_kind(ctx.attributes()));
}
Status prepare_lp_pool(PrepareContext& ctx) {
  return prepare_pool(ctx, PoolKind::kLp);
}

// ---------------------------------------------------------------------------------------------------------------------

Status infer_global_pool(InferContext& ctx) {
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ctx.element(0)), Status();
  if (x->size() < 2) {
    return error(Code::kInvalidArgument, "x has shape {}, expected rank 2 or more", to_string(*x));
  }
  Shape out = *x;
  for (size_t i = 2; i < out.size(); ++i) out[i] = Dim(1);
  ctx.set_output(0, ctx.element(0), std::move(out));
  return {};
}

struct GlobalPoolState {
  PoolKind kind = PoolKind::kMax;
  ElementType type = ElementType::kFloat;
  int p = 2;
  int64_t rows = 0, plane = 1;
  Conversion conversion;
};

uint32_t run_global_pool(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GlobalPoolState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[2]]);
  s.conversion.run(slots[operands[0]], slots[operands[1]], scratch, [&](const void* x, void* y) {
    parallel_for(s.rows, costs::kGlobalPoolElementNs * static_cast<double>(s.plane),
                 [&](int64_t begin, int64_t end, int) {
                   kernels::run_global_pool(s.kind, s.type, s.p, s.plane, x, y, begin, end);
                 });
  });
  return 0;
}

template <PoolKind kKind>
Status prepare_global_pool(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  auto* s = ctx.make_state<GlobalPoolState>();
  s->kind = kKind;
  s->type = pool_type(x.type);
  s->rows = x.dims[0] * x.dims[1];
  for (size_t i = 2; i < x.dims.size(); ++i) s->plane *= x.dims[i];
  if (kKind == PoolKind::kLp) {
    TREADLE_ASSIGN(s->p, read_p(ctx.attributes()));
  }
  TREADLE_TRY(s->conversion.prepare(ctx, s->type));
  ctx.set_kernel(run_global_pool, s);
  return {};
}

// --- NHWC

struct NhwcPoolState {
  PoolKind kind = PoolKind::kMax;
  kernels::PoolShape shape;
  double row_ns = 0;
};

uint32_t run_pool_nhwc(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const NhwcPoolState*>(state);
  const int64_t rows = s.shape.batch * (s.shape.axes == 2 ? s.shape.output[0] : 1);
  parallel_for(rows, s.row_ns, [&](int64_t begin, int64_t end, int) {
    kernels::run_pool_nhwc(s.kind, s.shape, static_cast<const float*>(slots[operands[0]]),
                           static_cast<float*>(slots[operands[1]]), begin, end);
  });
  return 0;
}

Status infer_pool_nhwc(InferContext& ctx) {
  return infer_channels_last(ctx, infer_pool, 1, true);
}

Status prepare_pool_nhwc(PrepareContext& ctx) {
  auto* s = ctx.make_state<NhwcPoolState>();
  const bool average = ctx.attributes().get_int("average", 0) != 0;
  TREADLE_ASSIGN(s->shape, pool_shape(ctx.attributes(), channels_second(ctx.inputs[0].dims),
                                      channels_second(ctx.outputs[0].dims)));
  if (average) s->kind = average_kind(ctx.attributes());
  const Dims& y = ctx.outputs[0].dims;
  s->row_ns = costs::kPoolNhwcTapNs * static_cast<double>(y[y.size() - 2] * y.back());
  const kernels::PoolShape read = kernels::narrowed(s->shape);
  for (size_t i = 0; i < static_cast<size_t>(read.axes); ++i) s->row_ns *= static_cast<double>(read.kernel[i]);
  ctx.cost_ns = s->row_ns * static_cast<double>(s->shape.batch * (s->shape.axes == 2 ? s->shape.output[0] : 1));
  ctx.set_kernel(run_pool_nhwc, s);
  return {};
}

Status infer_global_average_nhwc(InferContext& ctx) {
  return infer_channels_last(ctx, infer_global_pool, 1, true);
}

struct GlobalAverageNhwc {
  int64_t images = 0, plane = 1, channels = 0;
};

uint32_t run_global_average_nhwc(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GlobalAverageNhwc*>(state);
  parallel_for(s.images, costs::kGlobalPoolElementNs * static_cast<double>(s.plane * s.channels),
               [&](int64_t begin, int64_t end, int) {
                 kernels::run_global_average_nhwc(s.plane, s.channels, static_cast<const float*>(slots[operands[0]]),
                                                  static_cast<float*>(slots[operands[1]]), begin, end);
               });
  return 0;
}

Status prepare_global_average_nhwc(PrepareContext& ctx) {
  auto* s = ctx.make_state<GlobalAverageNhwc>();
  const Dims& x = ctx.inputs[0].dims;
  s->images = x[0];
  s->channels = x.back();
  for (size_t i = 1; i + 1 < x.size(); ++i) s->plane *= x[i];
  ctx.set_kernel(run_global_average_nhwc, s);
  return {};
}

// Batch entries and channels are independent.
Status axes_of_planes(AxisContext& c) {
  if (c.in(0) > 1) return looks_along(fmt::format("its windows run along axis {}", c.in(0)));
  const auto& outputs = c.node().outputs;
  if (outputs.size() > 1 && outputs[1]) return looks_along("its indices count the elements of all entries");
  return c.give(0, c.in(0));
}

}  // namespace

Result<kernels::PoolShape> pool_shape(const ir::Attributes& attributes, const Dims& x, const Dims& y) {
  TREADLE_ASSIGN(Window window, read_window(attributes, x.size() - 2));
  kernels::PoolShape shape;
  shape.axes = window.axes;
  shape.batch = x[0];
  shape.channels = x[1];
  shape.input = spatial_sizes(x);
  shape.output = spatial_sizes(y);
  window.resolve_pads(shape.input, shape.output);
  shape.kernel = window.kernel;
  shape.stride = window.stride;
  shape.dilation = window.dilation;
  shape.pad_begin = window.pad_begin;
  shape.pad_end = window.pad_end;
  shape.column_major_indices = attributes.get_int("storage_order", 0) != 0;
  return shape;
}

}  // namespace treadle::nn

TREADLE_OP(MaxPool, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("auto_pad", "NOTSET")
      .required("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(8).out("Indices", "I", Arity::kOptional).attr("storage_order", 0).type("I", types::kInt64s);
  op.since(10).attr("ceil_mode", 0).optional("dilations", ir::AttributeKind::kInts);
  op.since(11);
  op.since(12).type("T", tensors(ElementType::kFloat, ElementType::kUint8, ElementType::kInt8, ElementType::kFloat16,
                                 ElementType::kDouble));
  op.since(22).type("T", tensors(ElementType::kFloat, ElementType::kUint8, ElementType::kInt8, ElementType::kFloat16,
                                 ElementType::kDouble, ElementType::kBfloat16));
  op.infer(nn::infer_pool).prepare(nn::prepare_max_pool).axes(nn::axes_of_planes).over_time(TimeRule::kWindow);
}

TREADLE_OP(AveragePool, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("auto_pad", "NOTSET")
      .required("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(7).attr("count_include_pad", 0);
  op.since(10).attr("ceil_mode", 0);
  op.since(11);
  op.since(19).optional("dilations", ir::AttributeKind::kInts);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_pool).prepare(nn::prepare_average_pool).axes(nn::axes_of_planes).over_time(TimeRule::kWindow);
}

TREADLE_OP(LpPool, "") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("auto_pad", "NOTSET")
      .optional("kernel_shape", ir::AttributeKind::kInts)
      .attr("p", 2.0)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(2).required("kernel_shape", ir::AttributeKind::kInts).attr("p", 2);
  op.since(11);
  op.since(18).attr("ceil_mode", 0).optional("dilations", ir::AttributeKind::kInts);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_pool).prepare(nn::prepare_lp_pool).axes(nn::axes_of_planes).over_time(TimeRule::kWindow);
}

TREADLE_OP(GlobalAveragePool, "") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_global_pool)
      .prepare(nn::prepare_global_pool<kernels::PoolKind::kAverage>)
      .axes(nn::axes_of_planes);
}

TREADLE_OP(GlobalMaxPool, "") {
  op.since(1).in("X", "T").out("Y", "T").type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_global_pool).prepare(nn::prepare_global_pool<kernels::PoolKind::kMax>).axes(nn::axes_of_planes);
}

TREADLE_OP(GlobalLpPool, "") {
  op.since(1).in("X", "T").out("Y", "T").attr("p", 2.0).type("T", types::kFloats);
  op.since(2).attr("p", 2);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_global_pool).prepare(nn::prepare_global_pool<kernels::PoolKind::kLp>).axes(nn::axes_of_planes);
}

// MaxPool, or with `average` AveragePool, of float tensors [N, spatial..., C]. Made by opt::lay_channels_last.
TREADLE_OP(PoolNhwc, "treadle") {
  op.since(1)
      .in("X", "T")
      .out("Y", "T")
      .attr("auto_pad", "NOTSET")
      .attr("average", 0)
      .attr("ceil_mode", 0)
      .attr("count_include_pad", 0)
      .optional("dilations", ir::AttributeKind::kInts)
      .required("kernel_shape", ir::AttributeKind::kInts)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", tensors(ElementType::kFloat));
  op.infer(nn::infer_pool_nhwc).prepare(nn::prepare_pool_nhwc).axes(axes::entries);
}

// GlobalAveragePool of float tensors [N, spatial..., C].
TREADLE_OP(GlobalAverageNhwc, "treadle") {
  op.since(1).in("X", "T").out("Y", "T").type("T", tensors(ElementType::kFloat));
  op.infer(nn::infer_global_average_nhwc).prepare(nn::prepare_global_average_nhwc).axes(axes::entries);
}
