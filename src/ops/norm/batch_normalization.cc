// BatchNormalization. Statistics are inputs or, in training, those of the batch. The old attribute spatial = 0 has
// statistics for each position of an image instead of each channel.

#include <cmath>

#include "base/in_pieces.h"
#include "base/thread_pool.h"
#include "op/axis_rules.h"
#include "op/elementwise.h"
#include "op/op_def.h"
#include "op/work.h"
#include "ops/costs.h"
#include "ops/norm/channels.h"

namespace treadle {

namespace {

// Whether the batch's own statistics are used and running statistics are returned. Before version 14, the number of
// outputs says so.
bool is_training(const ir::NodeInfo& node) {
  if (node.version->since >= 14) return node.attributes.get_int("training_mode") != 0;
  return node.output_count > 1;
}

AxisView channel_view(const ir::NodeInfo& node, const Dims& dims) {
  const auto rank = static_cast<int64_t>(dims.size());
  if (rank < 2) return view_along(dims, 1, 1);  // [N]: one channel
  const bool spatial = node.attributes.get_int("spatial", 1) != 0;
  return view_along(dims, 1, spatial ? 2 : rank);
}

Status infer_batch_norm(InferContext& ctx) {
  TREADLE_TRY(infer_like_input(ctx));
  const Shape* x = ctx.shape(0);
  if (x && x->empty()) return error(Code::kInvalidArgument, "X is a scalar, expected [N,C,...]");
  if (ctx.outputs.size() > 1 && !is_training(ctx.node)) {
    return error(Code::kInvalidModel, "running statistics are asked for, expected attribute training_mode 1");
  }
  const Dim channels = x && x->size() > 1 ? (*x)[1] : Dim::unknown();
  for (size_t i = 1; i < 5; ++i) {
    const Shape* s = ctx.shape(i);
    if (!s || ctx.attributes().get_int("spatial", 1) == 0) continue;
    if (s->size() != 1 || ((*s)[0].is_known() && channels.is_known() && (*s)[0].value() != channels.value())) {
      return error(Code::kInvalidArgument, "{} has shape {}, expected [{}]", ctx.node.version->inputs[i].name,
                   to_string(*s), channels.is_known() ? channels.to_string() : "C");
    }
  }
  for (size_t i = 1; i < ctx.outputs.size(); ++i) {
    const size_t like = i % 2 == 1 ? 3 : 4;
    if (ctx.has_input(like)) ctx.set_output(i, ctx.input(like));
  }
  return {};
}

struct BatchNormState {
  norm::ChannelAffine affine;
  WideOperand inputs[5];
  norm::WideResult y;
  norm::WideResult statistics[4];
  bool wanted[4] = {};
  size_t output_count = 0;
  bool training = false;
  double epsilon = 0, momentum = 0;
  size_t alpha = 0, beta = 0, mean = 0, variance = 0;  // offsets of [channels] in scratch
};

// Mean and variance of each channel over batch and inner, in two passes.
template <class W>
void batch_statistics(const AxisView& view, const W* x, W* mean, W* variance) {
  const auto [batch, channels, inner] = view;
  const auto count = static_cast<double>(batch * inner);
  const auto channel = [&](size_t c) {
    StopPoll stop;
    auto sum = [&](auto&& term) {
      double total = 0;
      for (size_t n = 0; n < batch; ++n) {
        const W* row = x + (n * channels + c) * inner;
        in_pieces(static_cast<int64_t>(inner), costs::kBatchNormElementNs, stop, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) total += term(static_cast<double>(row[i]));
        });
      }
      return total / count;
    };
    const double m = sum([](double v) { return v; });
    mean[c] = static_cast<W>(m);
    variance[c] = static_cast<W>(sum([m](double v) { return (v - m) * (v - m); }));
  };
  parallel_for(static_cast<int64_t>(channels), 2 * costs::kBatchNormElementNs * count,
               [&](int64_t begin, int64_t end, int) {
                 for (int64_t c = begin; c < end; ++c) channel(static_cast<size_t>(c));
               });
}

template <class W>
void write_statistics(const BatchNormState& s, void* const* slots, const uint32_t* operands, std::byte* scratch,
                      const W* const (&running)[2], const W* const (&own)[2]) {
  const size_t channels = s.affine.view.n;
  for (size_t k = 0; k < 4; ++k) {
    if (!s.wanted[k]) continue;
    void* out = slots[operands[6 + k]];
    W* to = static_cast<W*>(s.statistics[k].begin(out, scratch));
    for (size_t c = 0; c < channels; ++c) {
      const double batch = own[k % 2][c], before = running[k % 2][c];
      to[c] = static_cast<W>(k >= 2 ? batch : before * s.momentum + batch * (1 - s.momentum));
    }
    s.statistics[k].finish(out, scratch);
  }
}

template <class W>
uint32_t run_batch_norm(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const BatchNormState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[5 + s.output_count]]);
  const W* in[5];
  for (size_t i = 0; i < 5; ++i) in[i] = static_cast<const W*>(s.inputs[i].get(slots[operands[i]], scratch));
  const W* mean = in[3];
  const W* variance = in[4];
  if (s.training) {
    auto* own_mean = reinterpret_cast<W*>(scratch + s.mean);
    auto* own_variance = reinterpret_cast<W*>(scratch + s.variance);
    batch_statistics(s.affine.view, in[0], own_mean, own_variance);
    write_statistics<W>(s, slots, operands, scratch, {mean, variance}, {own_mean, own_variance});
    mean = own_mean;
    variance = own_variance;
  }
  auto* alpha = reinterpret_cast<W*>(scratch + s.alpha);
  auto* beta = reinterpret_cast<W*>(scratch + s.beta);
  for (size_t c = 0; c < s.affine.view.n; ++c) {
    const double scale = static_cast<double>(in[1][c]) / std::sqrt(static_cast<double>(variance[c]) + s.epsilon);
    alpha[c] = static_cast<W>(scale);
    beta[c] = static_cast<W>(static_cast<double>(in[2][c]) - static_cast<double>(mean[c]) * scale);
  }
  void* out = slots[operands[5]];
  s.affine(in[0], alpha, beta, static_cast<W*>(s.y.begin(out, scratch)));
  s.y.finish(out, scratch);
  return 0;
}

Status prepare_batch_norm(PrepareContext& ctx) {
  const ElementType wide = norm::wide_float(ctx.inputs[0].type);
  const AxisView view = channel_view(ctx.node, ctx.inputs[0].dims);
  auto* state = ctx.make_state<BatchNormState>();
  state->affine =
      wide == ElementType::kFloat ? norm::ChannelAffine::make<float>(view) : norm::ChannelAffine::make<double>(view);
  ScratchLayout scratch;
  for (size_t i = 0; i < 5; ++i) TREADLE_TRY(state->inputs[i].prepare(ctx.inputs[i], wide, scratch));
  state->y.prepare(ctx.outputs[0], wide, scratch);
  state->output_count = ctx.outputs.size();
  for (size_t i = 1; i < ctx.outputs.size(); ++i) {
    state->wanted[i - 1] = ctx.has_output(i);
    if (ctx.has_output(i)) state->statistics[i - 1].prepare(ctx.outputs[i], wide, scratch);
  }
  state->training = is_training(ctx.node);
  state->epsilon = ctx.attributes().get_float("epsilon");
  state->momentum = ctx.attributes().get_float("momentum");
  for (size_t* offset : {&state->alpha, &state->beta, &state->mean, &state->variance}) {
    *offset = scratch.add(view.n * byte_width(wide));
  }
  ctx.scratch_bytes = scratch.size() + 64;
  ctx.set_kernel(wide == ElementType::kFloat ? run_batch_norm<float> : run_batch_norm<double>, state);
  return {};
}

Status batch_norm_axes(AxisContext& c) {
  const bool trains =
      c.attributes().get_int("training_mode") != 0 || (c.version() < 7 && c.attributes().get_int("is_test") == 0);
  if (c.in(0) == 1 || trains) return looks_along("it normalises over it");
  TREADLE_TRY(axes::only_first(c));
  return c.give(0, c.in(0));
}

}  // namespace

}  // namespace treadle

TREADLE_OP(BatchNormalization, "") {
  op.since(1)
      .in("X", "T")
      .in("scale", "T")
      .in("B", "T")
      .in("mean", "T")
      .in("var", "T")
      .out("Y", "T")
      .out("mean", "T", Arity::kOptional)
      .out("var", "T", Arity::kOptional)
      .out("saved_mean", "T", Arity::kOptional)
      .out("saved_var", "T", Arity::kOptional)
      .required("consumed_inputs", ir::AttributeKind::kInts)
      .attr("epsilon", 1e-05)
      .attr("is_test", 0)
      .attr("momentum", 0.9)
      .attr("spatial", 1)
      .type("T", types::kFloats);
  op.since(6).drop_attr("consumed_inputs");
  op.since(7).drop_attr("is_test");
  op.since(9).drop_attr("spatial");
  op.since(14)
      .no_inputs()
      .in("X", "T")
      .in("scale", "T")
      .in("B", "T")
      .in("input_mean", "U")
      .in("input_var", "U")
      .no_outputs()
      .out("Y", "T")
      .out("running_mean", "U", Arity::kOptional)
      .out("running_var", "U", Arity::kOptional)
      .attr("training_mode", 0)
      .type("T", types::kFloatsBf16)
      .type("U", types::kFloatsBf16);
  op.since(15)
      .in("scale", "T1")
      .in("B", "T1")
      .in("input_mean", "T2")
      .in("input_var", "T2")
      .out("running_mean", "T2", Arity::kOptional)
      .out("running_var", "T2", Arity::kOptional)
      .drop_type("U")
      .type("T1", types::kFloatsBf16)
      .type("T2", types::kFloatsBf16);
  op.infer(infer_batch_norm).prepare(prepare_batch_norm).axes(batch_norm_axes).work(work::reduction);
}
