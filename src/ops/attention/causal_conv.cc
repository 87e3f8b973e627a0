#include "ops/attention/causal_conv.h"

#include "kernels/dispatch.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle::attention {

namespace {

using enum CausalConvState::Input;
constexpr size_t kInputs = CausalConvState::kInputs;

Status expect(const InferContext& ctx, size_t i, std::string_view what, const Shape& expected) {
  const Shape* shape = ctx.shape(i);
  if (!shape) return {};
  bool fits = shape->size() == expected.size();
  for (size_t d = 0; fits && d < expected.size(); ++d) fits = !differ((*shape)[d], expected[d]);
  if (fits) return {};
  if (shape->size() != expected.size()) {
    return error(Code::kInvalidArgument, "{} has shape {}, expected {} dimensions", what, to_string(*shape),
                 expected.size());
  }
  return error(Code::kInvalidArgument, "{} has shape {}, expected {}", what, to_string(*shape), to_string(expected));
}

Status infer_causal_conv(InferContext& ctx) {
  const std::string_view activation = ctx.attributes().get_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return error(Code::kInvalidModel, "attribute activation is \"{}\", expected none, silu or swish", activation);
  }
  TREADLE_TRY(expect(ctx, kData, "input", {Dim(), Dim(), Dim()}));
  TREADLE_TRY(expect(ctx, kWeight, "weight", {Dim(), Dim(1), Dim()}));
  const Shape *data = ctx.shape(kData), *weight = ctx.shape(kWeight);
  const Dim batch = data ? (*data)[0] : Dim(), channels = data ? (*data)[1] : weight ? (*weight)[0] : Dim();
  const Dim taps = weight ? (*weight)[2] : Dim();
  TREADLE_TRY(expect(ctx, kWeight, "weight", {channels, Dim(1), taps}));
  if (taps.is_known() && taps.value() < 1)
    return error(Code::kInvalidArgument, "weight has shape {}, expected at least 1 tap along its last axis",
                 to_string(*weight));
  const Shape state{batch, channels, taps - Dim(1)};
  TREADLE_TRY(expect(ctx, kBias, "bias", {channels}));
  TREADLE_TRY(expect(ctx, kPast, "past_state", state));
  ctx.set_output(0, ctx.element(kData), {batch, channels, data ? (*data)[2] : Dim()});
  if (ctx.outputs.size() > 1) ctx.set_output(1, ctx.element(kData), state);
  return {};
}

}  // namespace

uint32_t run_causal_conv(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const CausalConvState*>(state);
  auto* scratch = static_cast<std::byte*>(slots[operands[s.scratch]]);
  const float* in[kInputs] = {};
  for (size_t i = 0; i < kInputs; ++i) {
    if (s.present[i]) in[i] = static_cast<const float*>(s.inputs[i].get(slots[operands[i]], scratch));
  }
  auto* out = static_cast<float*>(s.output.begin(slots[operands[s.outputs]], scratch));
  void* last = s.has_state ? slots[operands[s.outputs + 1]] : nullptr;
  auto* carried = last ? static_cast<float*>(s.state.begin(last, scratch)) : nullptr;
  auto* row = reinterpret_cast<float*>(scratch + s.row);
  const size_t past = s.taps - 1;
  const kernels::ElementwiseParams params{1, 0};
  StopPoll stop;
  for (size_t i = 0; i < s.batch * s.channels; ++i, out += s.length) {
    const size_t c = i % s.channels;
    if (in[kPast]) {
      std::copy_n(in[kPast] + i * past, past, row);
    } else {
      std::fill_n(row, past, 0.0f);
    }
    std::copy_n(in[kData] + i * s.length, s.length, row + past);
    std::fill_n(out, s.length, in[kBias] ? in[kBias][c] : 0.0f);
    for (size_t j = 0; j < s.taps; ++j) {
      if (stop.after(costs::kCausalConvTapNs * static_cast<double>(s.length))) return fail(KernelError::kStopped);
      const float weight = in[kWeight][c * s.taps + j];
      for (size_t t = 0; t < s.length; ++t) out[t] += weight * row[t + j];
    }
    if (s.swish) s.swish(out, nullptr, out, s.length, &params);
    if (carried) std::copy_n(row + s.length, past, carried + i * past);
  }
  s.output.finish(slots[operands[s.outputs]], scratch);
  if (last) s.state.finish(last, scratch);
  return 0;
}

namespace {

Status prepare_causal_conv(PrepareContext& ctx) {
  auto* s = ctx.make_state<CausalConvState>();
  const Dims& dims = ctx.inputs[kData].dims;
  s->batch = static_cast<size_t>(dims[0]);
  s->channels = static_cast<size_t>(dims[1]);
  s->length = static_cast<size_t>(dims[2]);
  s->taps = static_cast<size_t>(ctx.inputs[kWeight].dims[2]);
  ScratchLayout scratch;
  for (size_t i = 0; i < kInputs; ++i) {
    s->present[i] = ctx.has_input(i);
    if (s->present[i]) TREADLE_TRY(s->inputs[i].prepare(ctx.inputs[i], ElementType::kFloat, scratch));
  }
  s->output.prepare(ctx.outputs[0], ElementType::kFloat, scratch);
  s->has_state = ctx.has_output(1);
  if (s->has_state) s->state.prepare(ctx.outputs[1], ElementType::kFloat, scratch);
  s->row = scratch.add((s->length + s->taps - 1) * sizeof(float));
  if (ctx.attributes().get_string("activation", "none") != "none") {
    s->swish = kernels::elementwise_rows(kernels::ElementwiseOp::kSwish, ComputeType::kF32).vv;
  }
  ctx.scratch_bytes = scratch.size();
  s->outputs = static_cast<uint32_t>(ctx.inputs.size());
  s->scratch = ctx.scratch_operand();
  ctx.set_kernel(run_causal_conv, s);
  return {};
}

}  // namespace

}  // namespace treadle::attention

TREADLE_OP(CausalConvWithState, "") {
  op.since(27)
      .in("input", "T")
      .in("weight", "T")
      .in("bias", "T", Arity::kOptional)
      .in("past_state", "T", Arity::kOptional)
      .out("output", "T")
      .out("present_state", "T")
      .attr("activation", "none")
      .type("T", types::kFloatsTo32);
  op.infer(attention::infer_causal_conv).prepare(attention::prepare_causal_conv).axes(axes::entries_of<0b1001>);
}
