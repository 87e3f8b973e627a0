// InstanceNormalization and GroupNormalization: rows are normalised, then scaled and shifted per channel.

#include "kernels/normalize.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/norm/channels.h"

namespace treadle {

namespace {

struct GroupNormState {
  kernels::NormRows rows;
  norm::ChannelAffine affine;
  WideOperand x, scale, bias;
  norm::WideResult y;
};

template <class W>
uint32_t run_group_norm(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GroupNormState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[4]]);
  const void* x = s.x.get(slots[operands[0]], scratch);
  const auto* scale = static_cast<const W*>(s.scale.get(slots[operands[1]], scratch));
  const auto* bias = static_cast<const W*>(s.bias.get(slots[operands[2]], scratch));
  void* out = slots[operands[3]];
  auto* y = static_cast<W*>(s.y.begin(out, scratch));
  parallel_normalize(s.rows, x, nullptr, nullptr, y, nullptr, nullptr);
  s.affine(y, scale, bias, y);
  s.y.finish(out, scratch);
  return 0;
}

// `groups` rows per image; scale and bias for each of `channels` equal parts of an image.
Status prepare_rows(PrepareContext& ctx, size_t groups, size_t channels) {
  const Operand& x = ctx.inputs[0];
  const ElementType wide = norm::wide_float(x.type);
  auto* state = ctx.make_state<GroupNormState>();
  const auto batch = static_cast<size_t>(x.dims[0]);
  const size_t image = view_along(x.dims, 0).inner;
  state->rows.type = state->rows.scale_type = wide;
  state->rows.rows = batch * groups;
  state->rows.n = groups ? image / groups : 0;
  state->rows.epsilon = ctx.attributes().get_float("epsilon");
  const AxisView view{batch, channels, channels ? image / channels : 0};
  state->affine =
      wide == ElementType::kFloat ? norm::ChannelAffine::make<float>(view) : norm::ChannelAffine::make<double>(view);
  ScratchLayout scratch;
  TREADLE_TRY(state->x.prepare(x, wide, scratch));
  TREADLE_TRY(state->scale.prepare(ctx.inputs[1], wide, scratch));
  TREADLE_TRY(state->bias.prepare(ctx.inputs[2], wide, scratch));
  state->y.prepare(ctx.outputs[0], wide, scratch);
  ctx.scratch_bytes = scratch.size() + 64;
  ctx.set_kernel(wide == ElementType::kFloat ? run_group_norm<float> : run_group_norm<double>, state);
  return {};
}

Status prepare_instance_norm(PrepareContext& ctx) {
  const auto channels = static_cast<size_t>(ctx.inputs[0].dims[1]);
  return prepare_rows(ctx, channels, channels);
}

// Version 18 has one scale per group, later ones one per channel.
Status prepare_group_norm(PrepareContext& ctx) {
  const auto groups = static_cast<size_t>(ctx.attributes().get_int("num_groups"));
  return prepare_rows(ctx, groups, ctx.version() < 21 ? groups : static_cast<size_t>(ctx.inputs[0].dims[1]));
}

// ---------------------------------------------------------------------------------------------------------------------

Status check_parameters(InferContext& ctx, const Dim& expected) {
  for (size_t i = 1; i < 3; ++i) {
    const Shape* s = ctx.shape(i);
    if (!s) continue;
    if (s->size() != 1 || ((*s)[0].is_known() && expected.is_known() && (*s)[0].value() != expected.value())) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected [{}]", ctx.node.version->inputs[i].name,
                   to_string(*s), expected.to_string());
    }
  }
  return {};
}

Status infer_instance_norm(InferContext& ctx) {
  if (const Shape* x = ctx.shape(0)) {
    if (x->size() < 2) return error(Code::kInvalidArgument, "input has shape {}, expected [N,C,...]", to_string(*x));
    TREADLE_TRY(check_parameters(ctx, (*x)[1]));
  }
  return infer_like_input(ctx);
}

Status infer_group_norm(InferContext& ctx) {
  const int64_t groups = ctx.attributes().get_int("num_groups");
  if (groups < 1) return error(Code::kInvalidModel, "attribute num_groups is {}, expected at least 1", groups);
  if (const Shape* x = ctx.shape(0)) {
    if (x->size() < 2) return error(Code::kInvalidArgument, "X has shape {}, expected [N,C,...]", to_string(*x));
    if ((*x)[1].is_known() && (*x)[1].value() % groups != 0) {
      return error(Code::kInvalidArgument, "X has {} channels, expected a multiple of attribute num_groups, {}",
                   (*x)[1].value(), groups);
    }
    TREADLE_TRY(check_parameters(ctx, ctx.version() < 21 ? Dim(groups) : (*x)[1]));
  }
  return infer_like_input(ctx);
}

}  // namespace

}  // namespace treadle

TREADLE_OP(GroupNormalization, "") {
  op.since(18)
      .in("X", "T")
      .in("scale", "T")
      .in("bias", "T")
      .out("Y", "T")
      .attr("epsilon", 1e-05)
      .required("num_groups", ir::AttributeKind::kInt)
      .type("T", types::kFloatsBf16)
      .deprecated();
  op.since(21).attr("stash_type", 1);
  op.infer(infer_group_norm).prepare(prepare_group_norm).axes(axes::entries).work(work::reduction);
}

TREADLE_OP(InstanceNormalization, "") {
  op.since(1)
      .in("input", "T")
      .in("scale", "T")
      .in("B", "T")
      .out("output", "T")
      .optional("consumed_inputs", ir::AttributeKind::kInts)
      .attr("epsilon", 1e-05)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(infer_instance_norm).prepare(prepare_instance_norm).axes(axes::entries).work(work::reduction);
}
