#pragma once
// Token searches (GreedySearch, Sampling, BeamSearch, WhisperBeamSearch), lowered to a Loop over their decoder:
//
//   first iteration   the decoder, or the encoder with the start of the decoder in it, over the prompt
//   loop              feed the chosen token, run the decoder, choose the next token
//
// A row is one sequence that grows: beam k of batch entry b is row b * beams + k. Each search has a way to choose from
// an iteration's scores (Search::choose) and a way to feed the decoder (Feeds). Choosing uses operators of domain
// "treadle" on sequences of fixed size, int32 [rows, max_length], whose first `length` tokens are valid.
#include "op/op_def.h"

namespace treadle::generation {

enum class Family : uint8_t { kDecoder, kEncoderDecoder, kWhisper };  // attribute model_type

// Positions of operands that only some of the searches have.
struct Operands {
  static constexpr size_t kNone = SIZE_MAX;
  size_t ids = 0, max_length = 1, min_length = 2;
  size_t beams = kNone, returned = kNone, length_penalty = kNone;
  size_t repetition_penalty = kNone, vocab_mask = kNone, prefix_vocab_mask = kNone, attention_mask = kNone;
  size_t decoder_ids = kNone, logits_processor = kNone, temperature = kNone;
  size_t presence_mask = kNone, seed = kNone;
};

// The form of a node's bodies.
struct Form {
  Family family = Family::kDecoder;
  int64_t heads = 0, head_size = 0, vocabulary = 0;
  size_t layers = 0;
  size_t first_past = 0;                          // number of the decoder's input
  bool whole_sequence = false;                    // the decoder takes all tokens so far, not only the last one
  bool takes_hidden = false;                      // the decoder takes an output of the encoder
  bool encoder_decodes = false;                   // the encoder also returns the first logits
  ElementType element = ElementType::kUndefined;  // of logits and past states
};

// Checks the node's bodies. `encoder` and `first` (init_decoder) may be null.
Result<Form> read_form(const ir::NodeInfo& node, const ir::Region* decoder, const ir::Region* encoder,
                       const ir::Region* first);

struct Sizes {
  Form form;
  Dim batch, beams, prompt, longest;
};
// Checks the operands, infers the bodies if there are any, and returns the sizes of the results. There are no bodies
// when a run asks about sizes (op/size_check.h).
Result<Sizes> infer_bodies(InferContext& ctx, const Operands& operands);

using Values = std::vector<ir::Value*>;

// The choice from the scores of an iteration.
struct Chosen {
  ir::Value* tokens = nullptr;     // int32 [rows, 1]
  ir::Value* from = nullptr;       // int64 [rows]: the row that each row continues; null: itself
  ir::Value* sequences = nullptr;  // int32 [rows, max_length]
  ir::Value* goes_on = nullptr;    // bool: whether any row continues
  Values states;                   // of this search
  ir::Value* row = nullptr;        // to be stacked over the iterations; may be null
};

class Search {
 public:
  Search(LowerContext& ctx, const Operands& operands, Form form) : ctx_(ctx), at_(operands), form_(form) {}
  Search(const Search&) = delete;
  virtual ~Search() = default;
  void run();

 protected:
  // States before the first choice.
  virtual Values initial_states() = 0;
  // `scores`: float [rows, vocabulary], from the decoder.
  virtual Chosen choose(ir::Value* scores, ir::Value* sequences, ir::Value* length, const Values& states,
                        bool first) = 0;
  // Sets the node's outputs. `first`: the choice before the loop; `rows`: the stacked rows of the iterations.
  virtual void finish(ir::Value* sequences, ir::Value* length, const Values& states, const Chosen& first,
                      ir::Value* rows) = 0;

  // The scores after all penalties and masks of the node's operands and attributes.
  ir::Value* processed(ir::Value* scores, ir::Value* sequences, ir::Value* length, bool first);
  bool has(size_t operand) const { return ctx_.has_input(operand); }
  ir::Value* operand(size_t i) const { return has(i) ? ctx_.input(i) : nullptr; }
  ir::Value* one_int64(size_t operand, int64_t otherwise);  // [1]
  ir::Value* filled(double value, ElementType type, ir::Value* shape);
  ir::Value* joined(std::initializer_list<ir::Value*> parts, int64_t axis = 0);
  int64_t integer(const char* attribute, int64_t otherwise = 0) const {
    return ctx_.attributes().get_int(attribute, otherwise);
  }

  LowerContext& ctx_;
  const Operands& at_;
  const Form form_;
  ir::Value *batch_ = nullptr, *beams_ = nullptr, *rows_ = nullptr, *longest_ = nullptr;  // int64 [1]
  ir::Value* returned_ = nullptr;                                                         // int64 [1]
  ir::Value* entry_of_row_ = nullptr;                                                     // int64 [rows]
  ir::Value* prompt_ = nullptr;  // int64 [1]: number of tokens in the prompt

 private:
  // Inputs of the decoder, other than past states, from iteration to iteration.
  struct Feeds {
    ir::Value *positions = nullptr, *mask = nullptr;  // Family::kDecoder
  };

  void read_sizes();
  ir::Value* spread(ir::Value* entries);  // a row for each beam of an entry
  ir::Value* prompt_tokens();             // int32 [rows, prompt]
  ir::Value* is_text(ir::Value* tokens);  // whether tokens are not padding
  ir::Value* encoder_mask();
  ir::Value* empty_past();
  Values start(ir::Value* tokens, Feeds& feeds);  // outputs of the first iteration: logits, then past states
  Values start_decoder(ir::Value* tokens, Feeds& feeds);
  Values start_encoder(ir::Value* tokens);
  Values decode(ir::Value* tokens, ir::Value* sequences, ir::Value* length, const Feeds& feeds, const Values& pasts);
  ir::Value* scores_of(ir::Value* logits, bool first);

  Values constant_feeds_;  // of the decoder, between its tokens and past states
  Values cross_pasts_;
};

}  // namespace treadle::generation
