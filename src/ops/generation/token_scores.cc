// TokenScores (internal): scores of the next token, float [rows, vocabulary], after these steps of a search, in order:
// penalty of repeated tokens, repeated n-grams, a mask of the vocabulary, a mask of the vocabulary per batch entry, the
// ending token before the shortest length, temperature, presence, Whisper's timestamps. Forbidden tokens get the lowest
// float.
#include <algorithm>
#include <cmath>
#include <limits>

#include "op/op_def.h"
#include "op/parallel.h"
#include "op/work.h"
#include "ops/costs.h"
#include "ops/generation/rows.h"

namespace treadle {

namespace {

constexpr float kForbidden = std::numeric_limits<float>::lowest();

enum Input : size_t {
  kScores,
  kSequences,
  kLength,
  kRepetitionPenalty,
  kVocabMask,
  kPrefixVocabMask,
  kMinLength,
  kTemperature,
  kPresenceMask,
  kLogitsProcessor,
  kInputs
};

struct Timestamps {
  int64_t begin = 0, none = 0, language_model = 0, transcribe = 0, translate = 0, start = 0;
};

struct ScoresState {
  int64_t rows = 0, vocabulary = 0, longest = 0, entries = 0;
  size_t inputs = 0;  // of the node, which may lack the last optional ones
  int64_t end = 0, ngram = 0;
  float temperature = 1, presence_penalty = 0;
  bool temperature_is_half = false, penalty_is_half = false, presence_per_row = false;
  Timestamps timestamps;
};

// The data of one row.
struct Row {
  float* scores;
  const int32_t* tokens;
  int64_t length;

  void forbid(int64_t token) const { scores[token] = kForbidden; }
  void forbid(int64_t begin, int64_t end) const {
    if (begin < end) std::fill(scores + begin, scores + end, kForbidden);
  }
};

void punish_repetition(const Row& row, float penalty, std::vector<int32_t>& seen) {
  seen.assign(row.tokens, row.tokens + row.length);
  std::sort(seen.begin(), seen.end());
  const auto end = std::unique(seen.begin(), seen.end());
  for (auto it = seen.begin(); it != end; ++it) {
    float& score = row.scores[*it];
    score = score < 0 ? score * penalty : score / penalty;
  }
}

void forbid_ngrams(const Row& row, int64_t n) {
  if (n > row.length) return;
  const int32_t* last = row.tokens + row.length - (n - 1);
  for (int64_t i = 0; i + n <= row.length; ++i) {
    if (std::equal(last, last + (n - 1), row.tokens + i)) row.forbid(row.tokens[i + n - 1]);
  }
}

// The logarithm of the total probability of all timestamps, up to a constant that all scores of the row share.
float timestamp_mass(const Row& row, int64_t begin, int64_t vocabulary) {
  const float highest = *std::max_element(row.scores + begin, row.scores + vocabulary);
  float sum = 0;
  for (int64_t j = begin; j < vocabulary; ++j) {
    if (row.scores[j] > kForbidden) sum += std::exp(row.scores[j] - highest);
  }
  return sum > 0 ? std::log(sum) + highest : -std::numeric_limits<float>::infinity();
}

// Whisper's rules: timestamps come in pairs except the first, do not decrease, and are chosen if all of them together
// are likelier than any text token.
void apply_timestamps(const Row& row, const Timestamps& t, int64_t end_of_text, int64_t vocabulary) {
  constexpr int64_t kLatestFirst = 50;  // in units of a timestamp
  const auto is_timestamp = [&](int32_t token) { return token >= t.begin; };
  const auto* end = row.tokens + row.length;
  const auto* first = std::find_if(row.tokens, end, is_timestamp);
  const int64_t prompt = first == end ? row.length : first - row.tokens + 1;
  row.forbid(t.none);
  row.forbid(t.language_model);
  if (row.length > prompt) {
    for (const int64_t token : {t.start, t.translate, t.transcribe}) row.forbid(token);
  }
  const bool last_is = row.length > 0 && is_timestamp(end[-1]);
  const bool one_before_is = row.length <= prompt || is_timestamp(end[-2]);
  if (last_is && one_before_is) row.forbid(t.begin, vocabulary);
  if (last_is && !one_before_is) row.forbid(0, end_of_text);
  for (const auto* token = end; token-- > row.tokens;) {
    if (!is_timestamp(*token)) continue;
    row.forbid(t.begin, std::min<int64_t>(vocabulary, *token + (last_is && !one_before_is ? 0 : 1)));
    break;
  }
  if (row.length == prompt) row.forbid(t.begin + kLatestFirst + 1, vocabulary);
  const float text = *std::max_element(row.scores, row.scores + t.begin);
  if (timestamp_mass(row, t.begin, vocabulary) > text) row.forbid(0, t.begin);
}

float number_of(const void* value, bool is_half) {
  if (!is_half) return *static_cast<const float*>(value);
  float wide = 0;
  kernels::cast(ElementType::kFloat16, ElementType::kFloat, value, &wide, 1);
  return wide;
}

struct Operands {
  const void* slot[kInputs];

  const int32_t* ints(size_t i) const { return static_cast<const int32_t*>(slot[i]); }
};

void process_row(const ScoresState& s, const Operands& in, int64_t r, const Row& row, std::vector<int32_t>& seen) {
  const int64_t v = s.vocabulary;
  if (in.slot[kRepetitionPenalty]) {
    const float penalty = number_of(in.slot[kRepetitionPenalty], s.penalty_is_half);
    if (penalty != 1) punish_repetition(row, penalty, seen);
  }
  if (s.ngram > 0) forbid_ngrams(row, s.ngram);
  for (const size_t i : {kVocabMask, kPrefixVocabMask}) {
    const int32_t* mask = in.ints(i);
    if (!mask) continue;
    if (i == kPrefixVocabMask) mask += r / (s.rows / s.entries) * v;
    for (int64_t j = 0; j < v; ++j) row.scores[j] = mask[j] == 0 ? kForbidden : row.scores[j];
  }
  const int32_t* least = in.ints(kMinLength);
  if (least && row.length < *least && s.end >= 0 && s.end < v) row.forbid(s.end);
  const float temperature =
      in.slot[kTemperature] ? number_of(in.slot[kTemperature], s.temperature_is_half) : s.temperature;
  if (temperature > 0 && temperature != 1) {
    for (int64_t j = 0; j < v; ++j) row.scores[j] /= temperature;
  }
  if (in.slot[kPresenceMask] && s.presence_penalty != 0) {
    const int32_t* present = in.ints(kPresenceMask) + (s.presence_per_row ? r * v : 0);
    for (int64_t j = 0; j < v; ++j) row.scores[j] -= static_cast<float>(present[j]) * s.presence_penalty;
  }
  constexpr int32_t kWhisper = 1;
  if (in.slot[kLogitsProcessor] && *in.ints(kLogitsProcessor) == kWhisper) {
    apply_timestamps(row, s.timestamps, s.end, v);
  }
}

uint32_t run_token_scores(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const ScoresState*>(state);
  Operands in{};
  for (size_t i = 0; i < s.inputs; ++i) in.slot[i] = slots[operands[i]];
  const int64_t length = *static_cast<const int64_t*>(in.slot[kLength]);
  auto* out = static_cast<float*>(slots[operands[s.inputs]]);
  const int32_t* tokens = in.ints(kSequences);
  if (length < 0 || length > s.longest) return fail(KernelError::kIndexOutOfRange, length, s.longest + 1);
  for (int64_t r = 0; r < s.rows; ++r) {
    const int32_t *row = tokens + r * s.longest, *end = row + length;
    const auto* wrong = std::find_if(row, end, [&](int32_t t) { return t < 0 || t >= s.vocabulary; });
    if (wrong != end) return fail(KernelError::kIndexOutOfRange, *wrong, s.vocabulary);
  }
  double token_ns = costs::kTokenScoreCopyNs;
  for (const size_t i : {kVocabMask, kPrefixVocabMask, kTemperature, kPresenceMask, kLogitsProcessor}) {
    if (in.slot[i]) token_ns += costs::kTokenScoreNs;
  }
  if (s.temperature != 1) token_ns += costs::kTokenScoreNs;
  const double ns = token_ns * static_cast<double>(s.vocabulary) + costs::kNgramBlockTokenNs *
                                                                       static_cast<double>(length) *
                                                                       static_cast<double>(std::min(s.ngram, length));
  parallel_for(s.rows, ns, [&](int64_t begin, int64_t end, int) {
    std::vector<int32_t> seen;
    for (int64_t r = begin; r < end; ++r) {
      const Row row{out + r * s.vocabulary, tokens + r * s.longest, length};
      std::copy_n(static_cast<const float*>(in.slot[kScores]) + r * s.vocabulary, s.vocabulary, row.scores);
      process_row(s, in, r, row, seen);
    }
  });
  return 0;
}

// Checks a mask of the vocabulary. `fits`: whether its number of rows is valid.
template <class Fits>
Status check_mask(const PrepareContext& ctx, size_t i, int64_t vocabulary, const char* expected, const Fits& fits) {
  if (!ctx.has_input(i)) return {};
  const Operand& mask = ctx.inputs[i];
  if (mask.rank() > 0 && mask.dims.back() == vocabulary && fits(mask.element_count() / vocabulary)) return {};
  return error(Code::kInvalidArgument, "{} has shape {}, expected {} of {} tokens", ctx.node.version->inputs[i].name,
               to_string(mask.dims), expected, vocabulary);
}

Status read_timestamps(const ir::Attributes& attributes, ScoresState& s) {
  const std::pair<const char*, int64_t*> tokens[] = {{"beginning_timestamp_token_id", &s.timestamps.begin},
                                                     {"no_timestamps_token_id", &s.timestamps.none},
                                                     {"start_of_lm_token_id", &s.timestamps.language_model},
                                                     {"transcribe_token_id", &s.timestamps.transcribe},
                                                     {"translate_token_id", &s.timestamps.translate},
                                                     {"decoder_start_token_id", &s.timestamps.start},
                                                     {"eos_token_id", &s.end}};
  for (const auto& [name, token] : tokens) {
    *token = attributes.get_int(name, -1);
    if (*token < 0 || *token >= s.vocabulary) {
      return error(Code::kInvalidModel, "attribute {} is {}, expected a token of {} for Whisper's timestamps", name,
                   *token, s.vocabulary);
    }
  }
  return {};
}

Status prepare_token_scores(PrepareContext& ctx) {
  auto* s = ctx.make_state<ScoresState>();
  const auto& a = ctx.attributes();
  s->rows = ctx.inputs[kScores].dims[0];
  s->vocabulary = ctx.inputs[kScores].dims[1];
  s->longest = ctx.inputs[kSequences].dims[1];
  s->inputs = ctx.inputs.size();
  s->end = a.get_int("eos_token_id", -1);
  s->ngram = a.get_int("no_repeat_ngram_size");
  s->temperature = a.get_float("temperature", 1);
  s->presence_penalty = a.get_float("presence_penalty", 0);
  if (s->vocabulary == 0) return error(Code::kInvalidArgument, "the scores are of no tokens, expected 1 or more");
  TREADLE_TRY(check_mask(ctx, kVocabMask, s->vocabulary, "one row", [](int64_t n) { return n == 1; }));
  TREADLE_TRY(check_mask(ctx, kPrefixVocabMask, s->vocabulary, "a row for each batch entry",
                         [&](int64_t n) { return n > 0 ? s->rows % n == 0 : s->rows == 0; }));
  TREADLE_TRY(check_mask(ctx, kPresenceMask, s->vocabulary, "one row, or one for each sequence,",
                         [&](int64_t n) { return n == 1 || n == s->rows; }));
  s->entries = ctx.has_input(kPrefixVocabMask) ? ctx.inputs[kPrefixVocabMask].element_count() / s->vocabulary : 1;
  s->presence_per_row = ctx.has_input(kPresenceMask) && ctx.inputs[kPresenceMask].element_count() != s->vocabulary;
  s->penalty_is_half =
      ctx.has_input(kRepetitionPenalty) && ctx.inputs[kRepetitionPenalty].type == ElementType::kFloat16;
  s->temperature_is_half = ctx.has_input(kTemperature) && ctx.inputs[kTemperature].type == ElementType::kFloat16;
  if (ctx.has_input(kLogitsProcessor)) TREADLE_TRY(read_timestamps(a, *s));
  ctx.set_kernel(run_token_scores, s);
  return {};
}

Status infer_token_scores(InferContext& ctx) {
  TREADLE_TRY(generation::check_rows(ctx, kScores, kSequences));
  for (const size_t i : {kLength, kRepetitionPenalty, kMinLength, kTemperature, kLogitsProcessor}) {
    if (ctx.has_input(i)) TREADLE_TRY(check_one_element(ctx, i, ctx.node.version->inputs[i].name));
  }
  ctx.set_output(0, ctx.input(kScores));
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(TokenScores, "treadle") {
  op.since(1)
      .in("scores", "tensor(float)")
      .in("sequences", "tensor(int32)")
      .in("length", "tensor(int64)")
      .in("repetition_penalty", "T", Arity::kOptional)
      .in("vocab_mask", "tensor(int32)", Arity::kOptional)
      .in("prefix_vocab_mask", "tensor(int32)", Arity::kOptional)
      .in("min_length", "tensor(int32)", Arity::kOptional)
      .in("temperature", "T", Arity::kOptional)
      .in("presence_mask", "tensor(int32)", Arity::kOptional)
      .in("logits_processor", "tensor(int32)", Arity::kOptional)
      .out("processed", "tensor(float)")
      .type("T", tensors(ElementType::kFloat, ElementType::kFloat16));
  op.infer(infer_token_scores).prepare(prepare_token_scores).can_fail().no_axes("it looks at all tokens of a row");
}
