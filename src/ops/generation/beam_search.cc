// BeamSearch and WhisperBeamSearch: the best of all tokens that may follow the beams of a batch entry become the next
// beams.
#include "ops/generation/rows.h"
#include "ops/generation/search.h"

namespace treadle::generation {

namespace {

using ir::Attribute;
using ir::Value;

const Operands& operands(const ir::NodeInfo& node) {
  static const Operands places{.beams = 3,
                               .returned = 4,
                               .length_penalty = 5,
                               .repetition_penalty = 6,
                               .vocab_mask = 7,
                               .prefix_vocab_mask = 8,
                               .attention_mask = 9,
                               .decoder_ids = 10,
                               .logits_processor = 11};
  static const Operands whisper = [] {
    Operands more = places;
    more.temperature = 14;
    return more;
  }();
  return node.op->name == "BeamSearch" ? places : whisper;
}

Status infer_beams(InferContext& ctx) {
  const Operands& at = operands(ctx.node);
  TREADLE_ASSIGN(const Sizes sizes, infer_bodies(ctx, at));
  const Dim vocabulary = sizes.form.vocabulary > 0 ? Dim(sizes.form.vocabulary) : Dim();
  const auto known = ctx.has_input(at.returned) ? ctx.dims_value(at.returned) : std::nullopt;
  const Dim returned = !ctx.has_input(at.returned) ? Dim(1) : known && known->size() == 1 ? (*known)[0] : Dim();
  TREADLE_TRY(check_sizes({sizes.longest, sizes.prompt, sizes.beams, returned}));
  if (ctx.outputs.size() > 3) {
    return error(Code::kNotImplemented, "treadle does not make the outputs cross_qk and non_speech_probs");
  }
  ctx.set_output(0, ElementType::kInt32, {sizes.batch, returned, sizes.longest});
  ctx.set_output(1, ElementType::kFloat, {sizes.batch, returned});
  ctx.set_output(2, ElementType::kFloat, {sizes.longest - sizes.prompt, sizes.batch, sizes.beams, vocabulary});
  return {};
}

class Beams final : public Search {
 public:
  Beams(LowerContext& ctx, const Operands& at, Form form) : Search(ctx, at, form) {}

 private:
  enum State : size_t { kSums, kEnded, kEndedScores, kDone };

  // At first all beams of an entry are equal, so only the first one counts.
  Values initial_states() override {
    Value* numbers =
        ctx_.call("Range", {ctx_.constant_int64(0), ctx_.call("Squeeze", {rows_}), ctx_.constant_int64(1)});
    Value* is_first = ctx_.call("Equal", {ctx_.call("Mod", {numbers, beams_}), ctx_.constant_int64(0)});
    Value* sums =
        ctx_.call("Where", {is_first, ctx_.number(0, ElementType::kFloat), ctx_.number(-1e9, ElementType::kFloat)});
    Value* one = ctx_.constant_int64s({1});
    Value* sizes = joined({batch_, beams_});
    return {ctx_.call("Unsqueeze", {sums, one}),
            filled(0, ElementType::kInt32, joined({sizes, ctx_.call("Add", {longest_, one})})),
            filled(0, ElementType::kFloat, sizes),
            ctx_.call("Expand", {ctx_.constant(Tensor::scalar<bool>(ElementType::kBool, false)), batch_})};
  }

  Value* length_penalty() {
    Value* penalty = operand(at_.length_penalty);
    if (!penalty || ctx_.type(at_.length_penalty).element == ElementType::kFloat) return penalty;
    return ctx_.call("Cast", {penalty}, {Attribute::of("to", static_cast<int64_t>(ElementType::kFloat))});
  }

  Chosen choose(Value* scores, Value* sequences, Value* length, const Values& states, bool first) override {
    // The Reshape fails if a decoder returns another number of rows; broadcasting would hide that.
    Value* shape = joined({rows_, ctx_.constant_int64s({form_.vocabulary})});
    Value* logarithms = ctx_.call("LogSoftmax", {ctx_.call("Reshape", {scores, shape})}, {Attribute::of("axis", 1)});
    Value* sums = ctx_.call("Add", {processed(logarithms, sequences, length, first), states[kSums]});
    Value* of_entries = ctx_.call("Reshape", {sums, joined({batch_, ctx_.constant_int64s({-1})})});
    Value* count = ctx_.call("Mul", {beams_, ctx_.constant_int64s({2})});
    const ir::Node* best = ctx_.node("TopK", Values{of_entries, count}, 2, {Attribute::of("axis", 1)});
    const Values inputs{best->outputs[0], best->outputs[1],     sequences,     length,
                        states[kEnded],   states[kEndedScores], states[kDone], length_penalty()};
    const ir::Node* step = ctx_.node(
        "BeamStep", inputs, 8,
        {Attribute::of("vocab_size", form_.vocabulary), Attribute::of("eos_token_id", integer("eos_token_id")),
         Attribute::of("pad_token_id", integer("pad_token_id")),
         Attribute::of("early_stopping", integer("early_stopping"))},
        "treadle");
    const auto& made = step->outputs;
    return {.tokens = made[0],
            .from = made[1],
            .sequences = made[3],
            .goes_on = made[7],
            .states = {made[2], made[4], made[5], made[6]},
            .row = ctx_.node().output_count > 2 ? sums : nullptr};
  }

  void finish(Value* sequences, Value* length, const Values& states, const Chosen& first, Value* rows) override {
    const ir::Node* end = ctx_.node(
        "BeamEnd",
        Values{sequences, length, states[kSums], states[kEnded], states[kEndedScores], states[kDone], length_penalty()},
        2, {Attribute::of("pad_token_id", integer("pad_token_id"))}, "treadle");
    for (size_t i = 0; i < 2; ++i) {
      Value* returned =
          ctx_.call("Slice", {end->outputs[i], ctx_.constant_int64s({0}), returned_, ctx_.constant_int64s({1})});
      ctx_.set_output(i, returned);
    }
    if (rows) ctx_.set_output(2, scores_of_iterations(first.row, rows));
  }

  // [max_length - prompt, batch, beams, vocabulary], with zeros for iterations that did not run. A loop without
  // iterations does not know the sizes of its rows, so they are computed here.
  Value* scores_of_iterations(Value* first, Value* rows) {
    Value* zero = ctx_.constant_int64s({0});
    Value* iterations = ctx_.call("Shape", {rows}, {Attribute::of("end", 1)});
    Value* stated = joined({iterations, rows_, ctx_.constant_int64s({form_.vocabulary})});
    Value* more = ctx_.call("Reshape", {rows, stated}, {Attribute::of("allowzero", 1)});
    Value* made = joined({ctx_.call("Unsqueeze", {first, zero}), more});
    Value* count = ctx_.call("Shape", {made}, {Attribute::of("end", 1)});
    Value* missing = ctx_.call("Sub", {ctx_.call("Sub", {longest_, prompt_}), count});
    Value* all = ctx_.call("Pad", {made, joined({zero, missing}), nullptr, zero});
    Value* shape = joined({zero, batch_, beams_, ctx_.constant_int64s({form_.vocabulary})});
    return ctx_.call("Reshape", {all, shape});
  }
};

Status lower_beams(LowerContext& ctx) {
  TREADLE_ASSIGN(const Form form,
                 read_form(ctx.node(), ctx.body("decoder"), ctx.body("encoder"), ctx.body("init_decoder")));
  if (form.vocabulary <= 0) {
    return error(Code::kInvalidModel,
                 "the number of tokens along the last axis of the decoder's logits is not known, expected one");
  }
  Beams(ctx, operands(ctx.node()), form).run();
  return {};
}

void add_common(VersionBuilder& v) {
  v.in("input_ids", "F")
      .in("max_length", "I")
      .in("min_length", "I", Arity::kOptional)
      .in("num_beams", "I")
      .in("num_return_sequences", "I")
      .in("length_penalty", "T", Arity::kOptional)
      .in("repetition_penalty", "T", Arity::kOptional)
      .in("vocab_mask", "M", Arity::kOptional)
      .in("prefix_vocab_mask", "M", Arity::kOptional)
      .in("attention_mask", "I", Arity::kOptional)
      .in("decoder_input_ids", "I", Arity::kOptional)
      .in("logits_processor", "I", Arity::kOptional)
      .out("sequences", "I")
      .out("sequences_scores", "T", Arity::kOptional)
      .out("scores", "T", Arity::kOptional)
      .required("decoder", ir::AttributeKind::kGraph)
      .optional("encoder", ir::AttributeKind::kGraph)
      .optional("init_decoder", ir::AttributeKind::kGraph)
      .required("eos_token_id", ir::AttributeKind::kInt)
      .required("pad_token_id", ir::AttributeKind::kInt)
      .attr("decoder_start_token_id", -1)
      .attr("early_stopping", 0)
      .attr("no_repeat_ngram_size", 0)
      .attr("vocab_size", -1)
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16))
      .type("F", tensors(ElementType::kFloat, ElementType::kInt32, ElementType::kFloat16))
      .type("I", types::kInt32s)
      .type("M", types::kInt32s);
}

}  // namespace

}  // namespace treadle::generation

TREADLE_OP(BeamSearch, "com.microsoft") {
  op.since(1).with(generation::add_common).attr("model_type", 0);
  op.infer(generation::infer_beams)
      .lower(generation::lower_beams)
      .can_fail()
      .no_axes("it goes on while any batch entry does");
}

TREADLE_OP(WhisperBeamSearch, "com.microsoft") {
  op.since(1)
      .with(generation::add_common)
      .in("cross_qk_layer_head", "I", Arity::kOptional)
      .in("extra_decoding_ids", "I", Arity::kOptional)
      .in("temperature", "T", Arity::kOptional)
      .out("cross_qk", "V", Arity::kOptional)
      .out("non_speech_probs", "T", Arity::kOptional)
      .attr("model_type", 2)
      .optional("beginning_timestamp_token_id", ir::AttributeKind::kInt)
      .optional("decoder_output_cross_qk", ir::AttributeKind::kInt)
      .optional("no_speech_token_id", ir::AttributeKind::kInt)
      .optional("no_timestamps_token_id", ir::AttributeKind::kInt)
      .optional("start_of_lm_token_id", ir::AttributeKind::kInt)
      .optional("transcribe_token_id", ir::AttributeKind::kInt)
      .optional("translate_token_id", ir::AttributeKind::kInt)
      .type("V", types::kFloat32s);
  op.infer(generation::infer_beams)
      .lower(generation::lower_beams)
      .can_fail()
      .no_axes("it goes on while any batch entry does");
}
