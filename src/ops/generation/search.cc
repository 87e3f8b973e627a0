#include "ops/generation/search.h"

namespace treadle::generation {

using ir::Attribute;
using ir::Value;

namespace {

Attribute axis_of(int64_t axis) {
  return Attribute::of("axis", axis);
}

Attribute to_type(ElementType type) {
  return Attribute::of("to", static_cast<int64_t>(type));
}

}  // namespace

Value* Search::one_int64(size_t i, int64_t otherwise) {
  if (!has(i)) return ctx_.constant_int64s({otherwise});
  Value* wide = ctx_.call("Cast", {ctx_.input(i)}, {to_type(ElementType::kInt64)});
  return ctx_.call("Reshape", {wide, ctx_.constant_int64s({1})});
}

Value* Search::filled(double value, ElementType type, Value* shape) {
  return ctx_.call("Expand", {ctx_.number(value, type), shape});
}

Value* Search::joined(std::initializer_list<Value*> parts, int64_t axis) {
  return ctx_.call("Concat", parts, {axis_of(axis)});
}

void Search::read_sizes() {
  const auto size = [&](size_t input, int64_t axis) {
    return ctx_.call("Shape", {ctx_.input(input)}, {Attribute::of("start", axis), Attribute::of("end", axis + 1)});
  };
  batch_ = size(at_.ids, 0);
  if (form_.family == Family::kDecoder) {
    prompt_ = size(at_.ids, 1);
  } else {
    prompt_ = has(at_.decoder_ids) ? size(at_.decoder_ids, 1) : ctx_.constant_int64s({1});
  }
  const ir::Node* sizes = ctx_.node(
      "SearchSizes", Values{one_int64(at_.max_length, 0), prompt_, one_int64(at_.beams, 1), one_int64(at_.returned, 1)},
      4, {}, "treadle");
  longest_ = sizes->outputs[0];
  beams_ = sizes->outputs[2];
  returned_ = sizes->outputs[3];
  rows_ = ctx_.call("Mul", {batch_, beams_});
  Value* numbers = ctx_.call("Range", {ctx_.constant_int64(0), ctx_.call("Squeeze", {rows_}), ctx_.constant_int64(1)});
  entry_of_row_ = ctx_.call("Div", {numbers, beams_});
}

Value* Search::spread(Value* entries) {
  return has(at_.beams) ? ctx_.call("Gather", {entries, entry_of_row_}, {axis_of(0)}) : entries;
}

Value* Search::prompt_tokens() {
  if (form_.family == Family::kDecoder) return spread(ctx_.input(at_.ids));
  if (has(at_.decoder_ids)) return spread(ctx_.input(at_.decoder_ids));
  const auto begin = static_cast<double>(integer("decoder_start_token_id", -1));
  return filled(begin, ElementType::kInt32, joined({rows_, ctx_.constant_int64s({1})}));
}

// --- the decoder

Value* Search::is_text(Value* tokens) {
  Value* pad = ctx_.number(static_cast<double>(integer("pad_token_id")), ElementType::kInt32);
  return ctx_.call("Not", {ctx_.call("Equal", {tokens, pad})});
}

Value* Search::empty_past() {
  Value* shape =
      form_.family == Family::kDecoder
          ? joined({ctx_.constant_int64s({2}), rows_, ctx_.constant_int64s({form_.heads, 0, form_.head_size})})
          : joined({rows_, ctx_.constant_int64s({form_.heads, 0, form_.head_size})});
  return filled(0, form_.element, shape);
}

// Positions count the tokens that are not padding; the mask has no effect. Padding is at position 0.
Values Search::start_decoder(Value* tokens, Feeds& feeds) {
  Value* ones = ctx_.call("Cast", {is_text(tokens)}, {to_type(ElementType::kInt32)});
  feeds.mask = has(at_.attention_mask) ? spread(ctx_.input(at_.attention_mask)) : ones;
  Value* before = ctx_.call("CumSum", {ones, ctx_.constant_int64(1)}, {Attribute::of("exclusive", 1)});
  feeds.positions = ctx_.call("ReduceSum", {ones, ctx_.constant_int64s({1})});
  Values arguments{tokens, ctx_.call("Mul", {before, ones}), feeds.mask};
  arguments.insert(arguments.end(), form_.layers, empty_past());
  return ctx_.inline_body(ctx_.body("init_decoder") ? "init_decoder" : "decoder", arguments);
}

// Tokens before the first one that is not padding are masked.
Value* Search::encoder_mask() {
  if (has(at_.attention_mask)) return ctx_.input(at_.attention_mask);
  Value* ones = ctx_.call("Cast", {is_text(ctx_.input(at_.ids))}, {to_type(ElementType::kInt32)});
  Value* so_far = ctx_.call("CumSum", {ones, ctx_.constant_int64(1)});
  Value* seen = ctx_.call("Greater", {so_far, ctx_.number(0, ElementType::kInt32)});
  return ctx_.call("Cast", {seen}, {to_type(ElementType::kInt32)});
}

Values Search::start_encoder(Value* tokens) {
  Values arguments{ctx_.input(at_.ids)};
  if (form_.family == Family::kEncoderDecoder) {
    arguments.push_back(encoder_mask());
    constant_feeds_.push_back(spread(arguments[1]));
  }
  if (form_.encoder_decodes) {
    Value* start = has(at_.decoder_ids) ? ctx_.input(at_.decoder_ids)
                                        : filled(static_cast<double>(integer("decoder_start_token_id", -1)),
                                                 ElementType::kInt32, joined({batch_, ctx_.constant_int64s({1})}));
    arguments.push_back(start);
  }
  const Values made = ctx_.inline_body("encoder", arguments);
  const size_t first = form_.encoder_decodes ? 2 : 0, pairs = 2 * form_.layers;
  Values results;
  if (form_.encoder_decodes) {
    if (form_.takes_hidden) constant_feeds_.push_back(spread(made[1]));
    results.push_back(made[0]);
    for (size_t i = 0; i < pairs; ++i) results.push_back(spread(made[first + i]));
  }
  for (size_t i = made.size() - pairs; i < made.size(); ++i) cross_pasts_.push_back(spread(made[i]));
  if (form_.encoder_decodes) return results;
  return decode(tokens, tokens, prompt_, {}, Values(pairs, empty_past()));
}

Values Search::start(Value* tokens, Feeds& feeds) {
  return form_.family == Family::kDecoder ? start_decoder(tokens, feeds) : start_encoder(tokens);
}

Values Search::decode(Value* tokens, Value* sequences, Value* length, const Feeds& feeds, const Values& pasts) {
  Values arguments{tokens};
  if (form_.family == Family::kDecoder) {
    arguments.push_back(feeds.positions);
    arguments.push_back(feeds.mask);
  } else if (form_.whole_sequence) {
    arguments[0] = ctx_.call("Slice", {sequences, ctx_.constant_int64s({0}), length, ctx_.constant_int64s({1})});
  }
  arguments.insert(arguments.end(), constant_feeds_.begin(), constant_feeds_.end());
  arguments.insert(arguments.end(), pasts.begin(), pasts.end());
  arguments.insert(arguments.end(), cross_pasts_.begin(), cross_pasts_.end());
  return ctx_.inline_body("decoder", arguments);
}

// --- scores

// The scores of the last token.
Value* Search::scores_of(Value* logits, bool first) {
  Value* last = ctx_.call("Gather", {logits, ctx_.constant_int64(-1)}, {axis_of(1)});
  if (integer("vocab_size", -1) > 0) {
    last = ctx_.call("Slice", {last, ctx_.constant_int64s({0}), ctx_.constant_int64s({form_.vocabulary}),
                               ctx_.constant_int64s({1})});
  }
  if (form_.element != ElementType::kFloat) last = ctx_.call("Cast", {last}, {to_type(ElementType::kFloat)});
  return first && form_.encoder_decodes ? spread(last) : last;
}

Value* Search::processed(Value* scores, Value* sequences, Value* length, bool first) {
  Values inputs{scores, sequences, length};
  inputs.push_back(operand(at_.repetition_penalty));
  inputs.push_back(operand(at_.vocab_mask));
  inputs.push_back(first ? operand(at_.prefix_vocab_mask) : nullptr);
  inputs.push_back(operand(at_.min_length));
  inputs.push_back(operand(at_.temperature));
  inputs.push_back(operand(at_.presence_mask));
  inputs.push_back(form_.family == Family::kWhisper ? operand(at_.logits_processor) : nullptr);
  std::vector<Attribute> attributes;
  const auto hand_on = [&](const char* name) {
    if (const Attribute* a = ctx_.attributes().find(name)) attributes.push_back(*a);
  };
  for (const char* name : {"eos_token_id", "no_repeat_ngram_size", "temperature", "presence_penalty",
                           "beginning_timestamp_token_id", "no_timestamps_token_id", "start_of_lm_token_id",
                           "transcribe_token_id", "translate_token_id", "decoder_start_token_id"}) {
    hand_on(name);
  }
  const bool changes = std::any_of(inputs.begin() + 3, inputs.end(), [](Value* v) { return v != nullptr; }) ||
                       integer("no_repeat_ngram_size") > 0 || ctx_.attributes().get_float("temperature", 1) != 1;
  return changes ? ctx_.call("TokenScores", inputs, std::move(attributes), "treadle") : scores;
}

// --- the loop

void Search::run() {
  read_sizes();
  Feeds feeds;
  Value* tokens = prompt_tokens();
  const Values began = start(tokens, feeds);
  Value* rest = ctx_.call("Sub", {longest_, prompt_});
  Value* padding = filled(static_cast<double>(integer("pad_token_id")), ElementType::kInt32, joined({rows_, rest}));
  Value* sequences = joined({tokens, padding}, 1);
  const Chosen first = choose(scores_of(began[0], true), sequences, prompt_, initial_states(), true);

  const bool counts = form_.family == Family::kDecoder;
  Value* one = ctx_.constant_int64s({1});
  Value* iterations = ctx_.call("Squeeze", {ctx_.call("Sub", {rest, one})});
  Values inputs{iterations, first.goes_on, first.tokens, first.sequences, ctx_.call("Add", {prompt_, one})};
  if (first.from) inputs.push_back(first.from);
  if (counts) inputs.insert(inputs.end(), {feeds.positions, feeds.mask});
  inputs.insert(inputs.end(), first.states.begin(), first.states.end());
  inputs.insert(inputs.end(), began.begin() + 1, began.end());
  const size_t states = inputs.size() - 2;
  ir::Node* loop = ctx_.node("Loop", inputs, states + (first.row ? 1 : 0));

  ctx_.begin_region(loop, "body");
  ctx_.region_input("iteration", Type::tensor(ElementType::kInt64, Shape{}));
  ctx_.region_input("goes_on", Type::tensor(ElementType::kBool, Shape{}));
  Values in;
  for (size_t i = 0; i < states; ++i) in.push_back(ctx_.region_input("state_" + std::to_string(i), {}));
  size_t at = 3;
  Value* from = first.from ? in[at++] : nullptr;
  Feeds now;
  if (counts) {
    Value* ones = filled(1, ElementType::kInt32, joined({rows_, one}));
    now.positions = in[at];
    now.mask = joined({in[at + 1], ones}, 1);
    at += 2;
  }
  const Values own(in.begin() + static_cast<ptrdiff_t>(at),
                   in.begin() + static_cast<ptrdiff_t>(at + first.states.size()));
  Values pasts(in.begin() + static_cast<ptrdiff_t>(at + first.states.size()), in.end());
  if (from) {
    for (Value*& past : pasts) past = ctx_.call("Gather", {past, from}, {axis_of(counts ? 1 : 0)});
  }
  const Values made = decode(in[0], in[1], in[2], now, pasts);
  const Chosen next = choose(scores_of(made[0], false), in[1], in[2], own, false);
  ctx_.region_output(next.goes_on);
  for (Value* v : {next.tokens, next.sequences, ctx_.call("Add", {in[2], one})}) ctx_.region_output(v);
  if (from) ctx_.region_output(next.from);
  if (counts) {
    ctx_.region_output(ctx_.call("Add", {now.positions, ctx_.number(1, ElementType::kInt32)}));
    ctx_.region_output(now.mask);
  }
  for (Value* v : next.states) ctx_.region_output(v);
  for (size_t i = 1; i < made.size(); ++i) ctx_.region_output(made[i]);
  if (next.row) ctx_.region_output(next.row);
  ctx_.end_region();

  const Values last(loop->outputs.begin() + static_cast<ptrdiff_t>(at),
                    loop->outputs.begin() + static_cast<ptrdiff_t>(at + first.states.size()));
  finish(loop->outputs[1], loop->outputs[2], last, first, first.row ? loop->outputs.back() : nullptr);
}

}  // namespace treadle::generation
