#pragma once
// Searches for tokens (GreedySearch, Sampling, BeamSearch, WhisperBeamSearch) as an ordinary Loop over their decoder:
//
//   first trip   the decoder, or the encoder with the start of the decoder in it, over the prompt
//   loop         feed the token that was chosen, run the decoder, choose the next token
//
// A row is one sequence that grows: beam k of batch entry b is row b * beams + k. What a search does with the scores of
// a trip is its Choice; how the decoder is fed is its Feeding. The choices are kernels of the domain "treadle" that
// work on sequences of a fixed size, int32 [rows, max_length], of which `length` tokens are there.
#include "op/op_def.h"

namespace treadle::generation {

enum class Family : uint8_t { kDecoder, kEncoderDecoder, kWhisper };  // attribute model_type

// The places of the operands that only some of the searches have.
struct Operands {
  static constexpr size_t kNone = SIZE_MAX;
  size_t ids = 0, max_length = 1, min_length = 2;
  size_t beams = kNone, returned = kNone, length_penalty = kNone;
  size_t repetition_penalty = kNone, vocab_mask = kNone, prefix_vocab_mask = kNone, attention_mask = kNone;
  size_t decoder_ids = kNone, logits_processor = kNone, temperature = kNone;
  size_t presence_mask = kNone, seed = kNone;
};

// What the bodies of a node are like.
struct Form {
  Family family = Family::kDecoder;
  int64_t heads = 0, head_size = 0, vocabulary = 0;
  size_t layers = 0;
  size_t first_past = 0;                          // input of the decoder
  bool whole_sequence = false;                    // the decoder takes all tokens so far, not the last one alone
  bool takes_hidden = false;                      // the decoder takes what the encoder made of its input
  bool encoder_decodes = false;                   // the encoder makes the first logits as well
  ElementType element = ElementType::kUndefined;  // of logits and pasts
};

// Checks the node's bodies. `encoder` and `first` (init_decoder) may be null.
Result<Form> read_form(const ir::NodeInfo& node, const ir::Region* decoder, const ir::Region* encoder,
                       const ir::Region* first);

struct Sizes {
  Form form;
  Dim batch, beams, prompt, longest;
};
// Checks the operands, and infers the bodies where there are any: a run that asks about sizes has none
// (op/size_check.h). The sizes that the results are made of.
Result<Sizes> infer_bodies(InferContext& ctx, const Operands& operands);

using Values = std::vector<ir::Value*>;

// What is chosen from the scores of a trip.
struct Chosen {
  ir::Value* tokens = nullptr;     // int32 [rows, 1]
  ir::Value* from = nullptr;       // int64 [rows]: the row that each row goes on from; null: itself
  ir::Value* sequences = nullptr;  // int32 [rows, max_length]
  ir::Value* goes_on = nullptr;    // bool: whether any row does
  Values states;                   // of the search's own
  ir::Value* row = nullptr;        // to be stacked over the trips; may be null
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
  // `scores`: float [rows, vocabulary], as the decoder made them.
  virtual Chosen choose(ir::Value* scores, ir::Value* sequences, ir::Value* length, const Values& states,
                        bool first) = 0;
  // Sets the node's outputs. `first` is what was chosen before the loop; `rows` what the trips stacked.
  virtual void finish(ir::Value* sequences, ir::Value* length, const Values& states, const Chosen& first,
                      ir::Value* rows) = 0;

  // The scores after what the node's operands and attributes forbid, favour or punish.
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
  ir::Value* prompt_ = nullptr;  // int64 [1]: how many tokens the sequences begin with

 private:
  // What the decoder is fed from trip to trip, beside pasts.
  struct Feeds {
    ir::Value *positions = nullptr, *mask = nullptr;  // Family::kDecoder
  };

  void read_sizes();
  ir::Value* spread(ir::Value* entries);  // a row for each beam of an entry
  ir::Value* prompt_tokens();             // int32 [rows, prompt]
  ir::Value* is_text(ir::Value* tokens);  // not for padding
  ir::Value* encoder_mask();
  ir::Value* empty_past();
  Values start(ir::Value* tokens, Feeds& feeds);  // what the first trip makes: logits, then pasts
  Values start_decoder(ir::Value* tokens, Feeds& feeds);
  Values start_encoder(ir::Value* tokens);
  Values decode(ir::Value* tokens, ir::Value* sequences, ir::Value* length, const Feeds& feeds, const Values& pasts);
  ir::Value* scores_of(ir::Value* logits, bool first);

  Values constant_feeds_;  // of the decoder, between its tokens and its pasts
  Values cross_pasts_;
};

}  // namespace treadle::generation
