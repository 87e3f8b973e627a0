// The candidate's recurrent product is with h (linear_before_reset) or with r·h. The first needs one product per step,
// the second two: that of the gates, and then that of the candidate.
#include "ops/rnn/recurrent.h"

namespace treadle::rnn {

namespace {

using Values = Lowering::Values;

const Family& family() {
  static const Family instance{3, {"Sigmoid", "Tanh"}, 1};
  return instance;
}

Status infer_gru(InferContext& ctx) {
  return infer(ctx, family());
}

// Biases of the input and of the recurrent product; null without input B.
struct Bias {
  ir::Value* input = nullptr;
  ir::Value* recurrent = nullptr;
};

Bias read_bias(Lowering& lowering, size_t d) {
  ir::Value* bias = lowering.weights(kB, d);
  const int64_t gates = 3 * lowering.hidden();
  if (!bias) return {};
  return {lowering.rows(bias, 0, gates), lowering.rows(bias, gates, 2 * gates)};
}

void lower_linear_before_reset(Lowering& lowering, size_t d) {
  const Bias bias = read_bias(lowering, d);
  ir::Value* projected = lowering.project(lowering.weights(kW, d), bias.input, 3 * lowering.hidden());
  ir::Value* r = lowering.weights(kR, d);
  lowering.scan(d, {lowering.initial(kInitialH, d)}, {projected}, {3 * lowering.hidden()},
                [&](const Values& states, const Values& step) {
                  ir::Value* recurrent = lowering.gemm(states[0], r, bias.recurrent);
                  return lowering.freeze_ended(
                      states, lowering.cell("GruCell", {step[0], recurrent, states[0]}, d)->outputs[0]);
                });
}

void lower_reset_before_linear(Lowering& lowering, size_t d) {
  const int64_t h = lowering.hidden();
  Bias bias = read_bias(lowering, d);
  ir::Value* sum = bias.input ? lowering.ctx().call("Add", {bias.input, bias.recurrent}) : nullptr;
  auto part = [&](ir::Value* v, int64_t begin, int64_t end) { return v ? lowering.rows(v, begin, end) : nullptr; };
  ir::Value* w = lowering.weights(kW, d);
  ir::Value* r = lowering.weights(kR, d);
  ir::Value* gates = lowering.project(lowering.rows(w, 0, 2 * h), part(sum, 0, 2 * h), 2 * h);
  ir::Value* candidate = lowering.project(lowering.rows(w, 2 * h, 3 * h), part(sum, 2 * h, 3 * h), h);
  ir::Value* r_gates = lowering.rows(r, 0, 2 * h);
  ir::Value* r_candidate = lowering.rows(r, 2 * h, 3 * h);
  lowering.scan(d, {lowering.initial(kInitialH, d)}, {gates, candidate}, {2 * h, h},
                [&](const Values& states, const Values& step) {
                  ir::Value* g = lowering.gemm(states[0], r_gates, step[0]);
                  const auto& zr = lowering.cell("GruGates", {g, states[0]}, d, 2)->outputs;
                  ir::Value* c = lowering.gemm(zr[1], r_candidate, step[1]);
                  return lowering.freeze_ended(states,
                                               lowering.cell("GruUpdate", {c, zr[0], states[0]}, d)->outputs[0]);
                });
}

Status lower_gru(LowerContext& ctx) {
  TREADLE_ASSIGN(Form form, read_form(ctx, family()));
  Lowering lowering(ctx, std::move(form));
  const bool linear_first = ctx.attributes().get_int("linear_before_reset") != 0;
  for (size_t d = 0; d < lowering.form().directions; ++d) {
    if (linear_first) {
      lower_linear_before_reset(lowering, d);
    } else {
      lower_reset_before_linear(lowering, d);
    }
  }
  lowering.finish();
  return {};
}

}  // namespace

}  // namespace treadle::rnn

TREADLE_OP(GRU, "") {
  op.since(1)
      .with(rnn::add_inputs)
      .out("Y", "T", Arity::kOptional)
      .out("Y_h", "T")
      .with(rnn::add_attributes)
      .attr("direction", "foward")
      .attr("output_sequence", 0)
      .type("T", types::kFloats)
      .type("T1", types::kInt32s);
  op.since(3).out("Y_h", "T", Arity::kOptional).attr("direction", "forward").attr("linear_before_reset", 0);
  op.since(7).drop_attr("output_sequence");
  op.since(14).attr("layout", 0);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(rnn::infer_gru).lower(rnn::lower_gru).can_fail().axes(rnn::recurrent_axes).over_time(TimeRule::kRecurrence);
}
