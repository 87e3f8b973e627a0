#include "ops/rnn/recurrent.h"

namespace treadle::rnn {

namespace {

const Family& family() {
  static const Family instance{4, {"Sigmoid", "Tanh", "Tanh"}, 2};
  return instance;
}

Status infer_lstm(InferContext& ctx) {
  return infer(ctx, family());
}

Status lower_lstm(LowerContext& ctx) {
  TREADLE_ASSIGN(Form form, read_form(ctx, family()));
  Lowering lowering(ctx, std::move(form));
  const int64_t gates = 4 * lowering.hidden();
  for (size_t d = 0; d < lowering.form().directions; ++d) {
    ir::Value* bias = lowering.weights(kB, d);
    if (bias) bias = ctx.call("Add", {lowering.rows(bias, 0, gates), lowering.rows(bias, gates, 2 * gates)});
    ir::Value* projected = lowering.project(lowering.weights(kW, d), bias, gates);
    ir::Value* r = lowering.weights(kR, d);
    ir::Value* peepholes = lowering.weights(kP, d);
    lowering.scan(d, {lowering.initial(kInitialH, d), lowering.initial(kInitialC, d)}, {projected}, {gates},
                  [&](const Lowering::Values& states, const Lowering::Values& step) {
                    return lowering.lstm_step(d, states, lowering.gemm(states[0], r, step[0]), peepholes);
                  });
  }
  lowering.finish();
  return {};
}

}  // namespace

}  // namespace treadle::rnn

TREADLE_OP(LSTM, "") {
  op.since(1)
      .with(rnn::add_inputs)
      .in("initial_c", "T", Arity::kOptional)
      .in("P", "T", Arity::kOptional)
      .out("Y", "T", Arity::kOptional)
      .out("Y_h", "T", Arity::kOptional)
      .out("Y_c", "T", Arity::kOptional)
      .with(rnn::add_attributes)
      .attr("input_forget", 0)
      .attr("output_sequence", 0)
      .type("T", types::kFloats)
      .type("T1", types::kInt32s);
  op.since(7).drop_attr("output_sequence");
  op.since(14).attr("layout", 0);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(rnn::infer_lstm)
      .lower(rnn::lower_lstm)
      .can_fail()
      .axes(rnn::recurrent_axes)
      .over_time(TimeRule::kRecurrence);
}
