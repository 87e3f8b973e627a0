// GreedySearch and Sampling: one row for each batch entry. The next token is the likeliest one, or is drawn.
#include "ops/generation/rows.h"
#include "ops/generation/search.h"

namespace treadle::generation {

namespace {

using ir::Attribute;
using ir::Value;

const Operands& operands() {
  static const Operands places{.repetition_penalty = 3,
                               .vocab_mask = 4,
                               .prefix_vocab_mask = 5,
                               .attention_mask = 6,
                               .presence_mask = 7,
                               .seed = 8};
  return places;
}

Status infer_one_row(InferContext& ctx) {
  TREADLE_ASSIGN(const Sizes sizes, infer_bodies(ctx, operands()));
  if (ctx.bodies && sizes.form.family != Family::kDecoder) {
    return error(Code::kInvalidModel, "attribute model_type is {}, expected 0: {} has no encoder",
                 static_cast<int>(sizes.form.family), ctx.node.op->name);
  }
  TREADLE_TRY(check_sizes({.longest = sizes.longest, .prompt = sizes.prompt, .beams = {}, .returned = {}}));
  ctx.set_output(0, ElementType::kInt32, {sizes.batch, sizes.longest});
  const Dim vocabulary = sizes.form.vocabulary > 0 ? Dim(sizes.form.vocabulary) : Dim();
  ctx.set_output(1, ElementType::kFloat, {sizes.batch, vocabulary});
  return {};
}

class OneRow : public Search {
 public:
  OneRow(LowerContext& ctx, Form form) : Search(ctx, operands(), form) {}

 protected:
  // Whether each row has ended. Sampling adds the state of its random numbers.
  Values initial_states() override {
    return {ctx_.call("Expand", {ctx_.constant(Tensor::scalar<bool>(ElementType::kBool, false)), rows_})};
  }

  Chosen append(Value* next, Value* sequences, Value* length, const Values& states) {
    const ir::Node* step = ctx_.node("GreedyStep", Values{next, sequences, length, states[0]}, 4,
                                     {Attribute::of("eos_token_id", integer("eos_token_id")),
                                      Attribute::of("pad_token_id", integer("pad_token_id"))},
                                     "treadle");
    return {.tokens = step->outputs[0],
            .sequences = step->outputs[1],
            .goes_on = step->outputs[3],
            .states = {step->outputs[2]}};
  }

  void finish(Value* sequences, Value*, const Values&, const Chosen&, Value*) override {
    ctx_.set_output(0, sequences);
  }
};

class Greedy final : public OneRow {
 public:
  using OneRow::OneRow;

 private:
  Chosen choose(Value* scores, Value* sequences, Value* length, const Values& states, bool first) override {
    Value* next = ctx_.call("ArgMax", {processed(scores, sequences, length, first)},
                            {Attribute::of("axis", 1), Attribute::of("keepdims", 0)});
    return append(next, sequences, length, states);
  }
};

class Sampled final : public OneRow {
 public:
  using OneRow::OneRow;

 private:
  Values initial_states() override {
    Values states = OneRow::initial_states();
    // Seeds are taken modulo the generator's modulus; the generator must not be at 0.
    Value* modulus = ctx_.constant_int64s({2147483647});
    Value* seed = ctx_.call("Mod", {one_int64(at_.seed, 0), modulus});
    states.push_back(ctx_.call("Max", {seed, ctx_.constant_int64s({1})}));
    return states;
  }

  Chosen choose(Value* scores, Value* sequences, Value* length, const Values& states, bool first) override {
    std::vector<Attribute> attributes;
    for (const char* name : {"top_p", "filter_value", "min_tokens_to_keep", "custom"}) {
      if (const Attribute* a = ctx_.attributes().find(name)) attributes.push_back(*a);
    }
    const ir::Node* drawn = ctx_.node("SampleTokens", Values{processed(scores, sequences, length, first), states[1]}, 3,
                                      std::move(attributes), "treadle");
    Chosen chosen = append(drawn->outputs[0], sequences, length, states);
    chosen.states.push_back(drawn->outputs[1]);
    if (first) ctx_.set_output(1, drawn->outputs[2]);
    return chosen;
  }
};

template <class T>
Status lower_one_row(LowerContext& ctx) {
  TREADLE_ASSIGN(const Form form,
                 read_form(ctx.node(), ctx.body("decoder"), ctx.body("encoder"), ctx.body("init_decoder")));
  T(ctx, form).run();
  return {};
}

void add_common(VersionBuilder& v) {
  v.in("input_ids", "I")
      .in("max_length", "I")
      .in("min_length", "I", Arity::kOptional)
      .in("repetition_penalty", "T", Arity::kOptional)
      .in("vocab_mask", "I", Arity::kOptional)
      .in("prefix_vocab_mask", "I", Arity::kOptional)
      .in("attention_mask", "I", Arity::kOptional)
      .out("sequences", "I")
      .required("decoder", ir::AttributeKind::kGraph)
      .optional("encoder", ir::AttributeKind::kGraph)
      .optional("init_decoder", ir::AttributeKind::kGraph)
      .required("eos_token_id", ir::AttributeKind::kInt)
      .required("pad_token_id", ir::AttributeKind::kInt)
      .attr("decoder_start_token_id", -1)
      .attr("model_type", 0)
      .attr("no_repeat_ngram_size", 0)
      .attr("vocab_size", -1)
      .type("T", types::kFloat32s)
      .type("I", types::kInt32s);
}

}  // namespace

}  // namespace treadle::generation

TREADLE_OP(GreedySearch, "com.microsoft") {
  op.since(1).with(generation::add_common);
  op.infer(generation::infer_one_row)
      .lower(generation::lower_one_row<generation::Greedy>)
      .can_fail()
      .no_axes("it goes on while any row does");
}

TREADLE_OP(Sampling, "com.microsoft") {
  op.since(1)
      .with(generation::add_common)
      .in("presence_mask", "I", Arity::kOptional)
      .in("seed", "I", Arity::kOptional)
      .out("filtered_logits", "T", Arity::kOptional)
      .attr("custom", 0)
      .attr("filter_value", -1e20)
      .attr("min_tokens_to_keep", 0)
      .attr("presence_penalty", 0.0)
      .attr("temperature", 1.0)
      .attr("top_p", 0.0);
  op.infer(generation::infer_one_row)
      .lower(generation::lower_one_row<generation::Sampled>)
      .can_fail()
      .no_axes("it goes on while any row does");
}
