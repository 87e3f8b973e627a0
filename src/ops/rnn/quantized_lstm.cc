// LSTM with 8-bit weights: the loop of LSTM with DynamicQuantizeGemm for its products. W and R are stored transposed,
// [directions, inputs, 4 * hidden]. Scales and zero points are one per direction or one per column.
#include "op/operands.h"
#include "ops/rnn/recurrent.h"

namespace treadle::rnn {

namespace {

enum QuantizedInput : size_t { kWScale = 8, kWZero, kRScale, kRZero };

const Family& family() {
  static const Family instance{4, {"Sigmoid", "Tanh", "Tanh"}, 2, true};
  return instance;
}

// Checks that input `i` has one element per direction, or one per column of the direction's weights.
Status check_scales(const InferContext& ctx, size_t i, const Dim& directions, const Dim& columns) {
  const Shape* shape = ctx.shape(i);
  if (!shape) return {};
  const bool fits =
      (shape->size() == 1 || (shape->size() == 2 && !differ((*shape)[1], columns))) && !differ((*shape)[0], directions);
  if (fits) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected [{}] or [{},{}]", ctx.node.version->inputs[i].name,
               to_string(*shape), directions.to_string(), directions.to_string(), columns.to_string());
}

Status infer_quantized_lstm(InferContext& ctx) {
  TREADLE_TRY(infer(ctx, family()));
  TREADLE_ASSIGN(const Form form, read_form(ctx.node, family(), ctx.has_input(kR) ? &ctx.input(kR) : nullptr));
  const Dim directions(static_cast<int64_t>(form.directions)), columns = Dim(family().gates) * form.hidden;
  for (size_t i = kWScale; i <= kRZero; ++i) TREADLE_TRY(check_scales(ctx, i, directions, columns));
  return {};
}

struct Weights {
  ir::Value *quantized, *scale, *zero;
};

Weights read_weights(Lowering& lowering, size_t d, size_t weights, size_t scale) {
  return {lowering.weights(weights, d), lowering.weights(scale, d), lowering.weights(scale + 1, d)};
}

// `addend` may be null, but is listed: the kernel knows its operands by position.
ir::Value* product(LowerContext& ctx, ir::Value* a, const Weights& b, ir::Value* addend) {
  return ctx.call("DynamicQuantizeGemm", {a, b.quantized, b.scale, b.zero, addend}, {}, "treadle");
}

Status lower_quantized_lstm(LowerContext& ctx) {
  TREADLE_ASSIGN(Form form, read_form(ctx, family()));
  Lowering lowering(ctx, std::move(form));
  const int64_t gates = 4 * lowering.hidden();
  for (size_t d = 0; d < lowering.form().directions; ++d) {
    ir::Value* bias = lowering.weights(kB, d);
    if (bias) bias = ctx.call("Add", {lowering.rows(bias, 0, gates), lowering.rows(bias, gates, 2 * gates)});
    const Weights w = read_weights(lowering, d, kW, kWScale), r = read_weights(lowering, d, kR, kRScale);
    ir::Value* projected = lowering.by_step(product(ctx, lowering.x_rows(), w, bias), gates);
    ir::Value* peepholes = lowering.weights(kP, d);
    lowering.scan(d, {lowering.initial(kInitialH, d), lowering.initial(kInitialC, d)}, {projected}, {gates},
                  [&](const Lowering::Values& states, const Lowering::Values& step) {
                    return lowering.lstm_step(d, states, product(ctx, states[0], r, step[0]), peepholes);
                  });
  }
  lowering.finish();
  return {};
}

}  // namespace

}  // namespace treadle::rnn

TREADLE_OP(DynamicQuantizeLSTM, "com.microsoft") {
  op.since(1)
      .in("X", "T")
      .in("W", "T2")
      .in("R", "T2")
      .in("B", "T", Arity::kOptional)
      .in("sequence_lens", "T1", Arity::kOptional)
      .in("initial_h", "T", Arity::kOptional)
      .in("initial_c", "T", Arity::kOptional)
      .in("P", "T", Arity::kOptional)
      .in("W_scale", "T")
      .in("W_zero_point", "T2")
      .in("R_scale", "T")
      .in("R_zero_point", "T2")
      .out("Y", "T", Arity::kOptional)
      .out("Y_h", "T", Arity::kOptional)
      .out("Y_c", "T", Arity::kOptional)
      .with(rnn::add_attributes)
      .attr("input_forget", 0)
      .type("T", types::kFloat32s)
      .type("T1", types::kInt32s)
      .type("T2", types::kBytes);
  op.infer(rnn::infer_quantized_lstm)
      .lower(rnn::lower_quantized_lstm)
      .can_fail()
      .no_axes("one scale is that of all elements of a step");
}
