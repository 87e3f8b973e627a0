// DeformConv: a convolution whose taps are moved by offsets that depend on the position, and weighted by a mask. The
// moved taps are gathered into columns; the rest is a matrix product per group.

#include <algorithm>
#include <cmath>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/work.h"
#include "ops/costs.h"
#include "ops/nn/window.h"
#include "ops/norm/channels.h"

namespace treadle::nn {

namespace {

enum Input : size_t { kData, kWeight, kOffset, kBias, kMask };
constexpr size_t kInputs = 5;

// ---- Inference

// [N, parts, positions...], where parts are known once the kernel is.
Status check_field(const InferContext& ctx, size_t i, const Dim& parts) {
  const Shape *shape = ctx.shape(i), *data = ctx.shape(kData);
  if (!shape || !data) return {};
  bool fits = shape->size() == data->size() && !differ((*shape)[0], (*data)[0]) && !differ((*shape)[1], parts);
  const Type& out = ctx.outputs[0];
  for (size_t d = 2; fits && out.has_shape && d < shape->size(); ++d) fits = !differ((*shape)[d], out.shape[d]);
  if (fits) return {};
  Shape expected = out.has_shape ? out.shape : unknown_shape(data->size());
  expected[0] = (*data)[0];
  expected[1] = parts;
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", i == kOffset ? "offset" : "mask",
               to_string(*shape), to_string(expected));
}

Status infer_deform_conv(InferContext& ctx) {
  TREADLE_TRY(infer_conv(ctx, kData, kWeight, kBias, ctx.element(kData)));
  const int64_t groups = ctx.attributes().get_int("offset_group", 1);
  if (groups < 1) return error(Code::kInvalidModel, "attribute offset_group is {}, expected at least 1", groups);
  const Shape *data = ctx.shape(kData), *weight = ctx.shape(kWeight);
  if (data && data->size() > 1 && (*data)[1].is_known() && (*data)[1].value() % groups != 0) {
    return error(Code::kInvalidArgument, "X has {} channels, expected a multiple of attribute offset_group, {}",
                 (*data)[1].value(), groups);
  }
  if (!weight || weight->size() < 3) return {};
  Dim taps(groups);
  for (size_t d = 2; d < weight->size(); ++d) taps = taps * (*weight)[d];
  TREADLE_TRY(check_field(ctx, kOffset, taps * Dim(static_cast<int64_t>(weight->size()) - 2)));
  return check_field(ctx, kMask, taps);
}

// ---- Kernel

struct DeformState {
  size_t axes = 0;
  kernels::Spatial input{}, output{}, kernel{}, stride{}, dilation{}, pad{};
  int64_t batch = 0, channels = 0, filters = 0, groups = 1, offset_groups = 1;
  int64_t taps = 1, positions = 1, pixels = 1;
  ElementType wide = ElementType::kFloat;
  WideOperand inputs[kInputs];
  bool present[kInputs] = {};
  norm::WideResult result;
  kernels::GemmPlan product;
  size_t columns = 0, gemm = 0;  // offsets in scratch
  uint32_t scratch = 0;
};

// The pixels around a point and their weights; points outside get none.
template <class W>
struct Corners {
  static constexpr size_t kMost = size_t{1} << kernels::kMaxSpatialAxes;
  int64_t at[kMost];
  W weight[kMost];
  size_t count = 0;

  void find(const DeformState& s, const W* point) {
    count = 0;
    int64_t low[kernels::kMaxSpatialAxes];
    W part[kernels::kMaxSpatialAxes];
    for (size_t d = 0; d < s.axes; ++d) {
      // Also refuses NaN.
      if (!(point[d] > -1 && point[d] < static_cast<W>(s.input[d]))) return;
      const W floor = std::floor(point[d]);
      low[d] = static_cast<int64_t>(floor);
      part[d] = point[d] - floor;
    }
    for (size_t corner = 0; corner < size_t{1} << s.axes; ++corner) {
      int64_t index = 0;
      W share = 1;
      bool inside = true;
      for (size_t d = 0; d < s.axes; ++d) {
        const bool upper = corner >> d & 1;
        const int64_t i = low[d] + upper;
        inside &= i >= 0 && i < s.input[d];
        index = index * s.input[d] + i;
        share *= upper ? part[d] : 1 - part[d];
      }
      if (!inside || share == 0) continue;
      at[count] = index;
      weight[count++] = share;
    }
  }
};

template <class W>
class Deform {
 public:
  Deform(const DeformState& s, void* const* slots, const uint32_t* operands)
      : s_(s), scratch_(static_cast<std::byte*>(slots[operands[s.scratch]])) {
    for (size_t i = 0; i < kInputs; ++i) {
      if (s.present[i]) in_[i] = static_cast<const W*>(s.inputs[i].get(slots[operands[i]], scratch_));
    }
  }

  // False: it was told to stop.
  bool run(W* out) {
    const int64_t rows = s_.filters / s_.groups, inner = s_.channels / s_.groups * s_.taps;
    auto* columns = reinterpret_cast<W*>(scratch_ + s_.columns);
    for (int64_t n = 0; n < s_.batch; ++n) {
      for (int64_t g = 0; g < s_.offset_groups; ++g) {
        if (!gather(n, g, columns)) return false;
      }
      for (int64_t g = 0; g < s_.groups; ++g) {
        const W* bias = in_[kBias] ? in_[kBias] + g * rows : nullptr;
        if (stop_requested()) return false;
        kernels::run_gemm(s_.product, in_[kWeight] + g * rows * inner, columns + g * inner * s_.positions, bias,
                          out + (n * s_.filters + g * rows) * s_.positions, scratch_ + s_.gemm);
      }
    }
    return true;
  }

 private:
  // The rows of the columns [channels, taps, positions] that one group of offsets moves.
  bool gather(int64_t n, int64_t group, W* columns) {
    const int64_t channels = s_.channels / s_.offset_groups, axes = static_cast<int64_t>(s_.axes);
    const int64_t field = (n * s_.offset_groups + group) * s_.taps;
    Corners<W> corners;
    for (int64_t tap = 0; tap < s_.taps; ++tap) {
      const W* offset = in_[kOffset] + (field + tap) * axes * s_.positions;
      const W* mask = in_[kMask] ? in_[kMask] + (field + tap) * s_.positions : nullptr;
      for (int64_t position = 0; position < s_.positions; ++position) {
        W point[kernels::kMaxSpatialAxes];
        place(tap, position, offset, point);
        corners.find(s_, point);
        for (int64_t c = group * channels; c < (group + 1) * channels; ++c) {
          const W* plane = in_[kData] + (n * s_.channels + c) * s_.pixels;
          W sum = 0;
          for (size_t i = 0; i < corners.count; ++i) sum += corners.weight[i] * plane[corners.at[i]];
          columns[(c * s_.taps + tap) * s_.positions + position] = mask ? sum * mask[position] : sum;
        }
        if (stop_.after(costs::kDeformPlaceNs +
                        costs::kDeformCornerNs * static_cast<double>(corners.count) * static_cast<double>(channels))) {
          return false;
        }
      }
    }
    return true;
  }

  // Where a tap reads for an output position. `offset`: [axes, positions].
  void place(int64_t tap, int64_t position, const W* offset, W* point) const {
    int64_t t = tap, p = position;
    for (size_t d = s_.axes; d-- > 0;) {
      const int64_t fixed = p % s_.output[d] * s_.stride[d] - s_.pad[d] + t % s_.kernel[d] * s_.dilation[d];
      point[d] = static_cast<W>(fixed) + offset[static_cast<int64_t>(d) * s_.positions + position];
      t /= s_.kernel[d];
      p /= s_.output[d];
    }
  }

  const DeformState& s_;
  std::byte* scratch_;
  const W* in_[kInputs] = {};
  StopPoll stop_;
};

template <class W>
uint32_t run_deform_conv(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const DeformState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.scratch]]);
  void* out = slots[operands[s.scratch - 1]];
  if (!Deform<W>(s, slots, operands).run(static_cast<W*>(s.result.begin(out, scratch)))) {
    return fail(KernelError::kStopped);
  }
  s.result.finish(out, scratch);
  return 0;
}

Status read_geometry(const PrepareContext& ctx, DeformState& s) {
  const Operand &x = ctx.inputs[kData], &w = ctx.inputs[kWeight];
  TREADLE_ASSIGN(const kernels::ConvShape shape, conv_shape(ctx, x, w));
  s.axes = x.dims.size() - 2;
  s.input = spatial_sizes(x.dims);
  s.output = spatial_sizes(ctx.outputs[0].dims);
  s.kernel = spatial_sizes(w.dims);
  s.stride = shape.stride;
  s.dilation = shape.dilation;
  s.pad = shape.pad_begin;
  s.batch = x.dims[0];
  s.channels = x.dims[1];
  s.filters = w.dims[0];
  s.groups = ctx.attributes().get_int("group", 1);
  s.offset_groups = ctx.attributes().get_int("offset_group", 1);
  for (size_t d = 0; d < s.axes; ++d) {
    s.taps *= s.kernel[d];
    s.positions *= s.output[d];
    s.pixels *= s.input[d];
  }
  return {};
}

Status prepare_deform_conv(PrepareContext& ctx) {
  auto* s = ctx.make_state<DeformState>();
  TREADLE_TRY(read_geometry(ctx, *s));
  s->wide = norm::wide_float(ctx.inputs[kData].type);
  ScratchLayout scratch;
  for (size_t i = 0; i < kInputs; ++i) {
    s->present[i] = ctx.has_input(i);
    if (s->present[i]) TREADLE_TRY(s->inputs[i].prepare(ctx.inputs[i], s->wide, scratch));
  }
  s->result.prepare(ctx.outputs[0], s->wide, scratch);
  kernels::GemmShape shape{.m = s->filters / s->groups, .n = s->positions, .k = s->channels / s->groups * s->taps};
  shape.a_row = shape.k;
  shape.b_row = shape.c_row = shape.n;
  shape.bias_row = 1;
  shape.bias_col = 0;
  s->product = kernels::prepare_gemm(compute_type(s->wide), shape);
  s->columns = scratch.add(static_cast<size_t>(s->channels * s->taps * s->positions) * byte_width(s->wide));
  s->gemm = scratch.add(s->product.scratch_bytes);
  ctx.scratch_bytes = scratch.size();
  s->scratch = ctx.scratch_operand();
  ctx.set_kernel(s->wide == ElementType::kDouble ? run_deform_conv<double> : run_deform_conv<float>, s);
  return {};
}

}  // namespace

}  // namespace treadle::nn

TREADLE_OP(DeformConv, "") {
  op.since(19)
      .in("X", "T")
      .in("W", "T")
      .in("offset", "T")
      .in("B", "T", Arity::kOptional)
      .in("mask", "T", Arity::kOptional)
      .out("Y", "T")
      .optional("dilations", ir::AttributeKind::kInts)
      .attr("group", 1)
      .optional("kernel_shape", ir::AttributeKind::kInts)
      .attr("offset_group", 1)
      .optional("pads", ir::AttributeKind::kInts)
      .optional("strides", ir::AttributeKind::kInts)
      .type("T", types::kFloats);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(nn::infer_deform_conv)
      .prepare(nn::prepare_deform_conv)
      .axes(axes::entries_of<0b10101>)
      .work(work::convolution<1>);
}
