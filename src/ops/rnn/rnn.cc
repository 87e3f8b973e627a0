#include "ops/rnn/recurrent.h"

namespace treadle::rnn {

namespace {

const Family& family() {
  static const Family instance{1, {"Tanh"}, 1};
  return instance;
}

Status infer_rnn(InferContext& ctx) {
  return infer(ctx, family());
}

Status lower_rnn(LowerContext& ctx) {
  TREADLE_ASSIGN(Form form, read_form(ctx, family()));
  Lowering lowering(ctx, std::move(form));
  const int64_t h = lowering.hidden();
  for (size_t d = 0; d < lowering.form().directions; ++d) {
    ir::Value* bias = lowering.weights(kB, d);
    if (bias) bias = ctx.call("Add", {lowering.rows(bias, 0, h), lowering.rows(bias, h, 2 * h)});
    ir::Value* projected = lowering.project(lowering.weights(kW, d), bias, h);
    ir::Value* r = lowering.weights(kR, d);
    lowering.scan(d, {lowering.initial(kInitialH, d)}, {projected}, {h},
                  [&](const Lowering::Values& states, const Lowering::Values& step) {
                    ir::Value* gate = lowering.gemm(states[0], r, step[0]);
                    // An activation that is a standard operator is fused with its neighbours.
                    const char* op = lowering.plain_activation(d);
                    return lowering.freeze_ended(
                        states, op ? ctx.call(op, {gate}) : lowering.cell("RnnCell", {gate}, d)->outputs[0]);
                  });
  }
  lowering.finish();
  return {};
}

}  // namespace

}  // namespace treadle::rnn

TREADLE_OP(RNN, "") {
  op.since(1)
      .with(rnn::add_inputs)
      .out("Y", "T", Arity::kOptional)
      .out("Y_h", "T", Arity::kOptional)
      .with(rnn::add_attributes)
      .attr_strings("activations", {"Tanh", "Tanh"})
      .attr("output_sequence", 0)
      .type("T", types::kFloats)
      .type("T1", types::kInt32s);
  op.since(7).drop_attr("output_sequence");
  op.since(14).attr("layout", 0);
  op.since(22).type("T", types::kFloatsBf16);
  op.infer(rnn::infer_rnn).lower(rnn::lower_rnn).can_fail().axes(rnn::recurrent_axes).over_time(TimeRule::kRecurrence);
}
