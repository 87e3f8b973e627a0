// BeamStep and BeamEnd (internal): the finished sequences of a beam search.
//
// Finished sequences are kept in order of their score, best first, at most as many as beams for each batch entry.
// `ended` int32 [batch, beams, 1 + max_length] has the length of each (0: none) and then its tokens. `ended_scores`
// float [batch, beams] has the score: the sum of logarithms of probabilities, divided by the length to the power of
// length_penalty. An entry is done when it has as many finished sequences as beams, and no growing one can become
// better.
#include <algorithm>
#include <cmath>

#include "op/op_def.h"
#include "op/refused_element.h"
#include "ops/control/bodies.h"

namespace treadle {

namespace {

// The finished sequences of one batch entry.
struct Ended {
  int32_t* sequences;
  float* scores;
  int64_t beams, longest;
  float length_penalty;

  int32_t* sequence(int64_t i) const { return sequences + i * (1 + longest); }
  int64_t count() const {
    int64_t n = 0;
    while (n < beams && sequence(n)[0] > 0) ++n;
    return n;
  }
  float score(float sum, int64_t length) const { return sum / std::pow(static_cast<float>(length), length_penalty); }
  bool can_improve(float sum, int64_t length) const { return scores[beams - 1] < score(sum, length); }

  void add(const int32_t* tokens, int64_t length, float sum) const {
    const float own = score(sum, length);
    int64_t at = count();
    if (at == beams) {
      if (!(own > scores[beams - 1])) return;
      --at;
    }
    for (; at > 0 && own > scores[at - 1]; --at) {
      scores[at] = scores[at - 1];
      std::copy_n(sequence(at - 1), 1 + longest, sequence(at));
    }
    scores[at] = own;
    sequence(at)[0] = static_cast<int32_t>(length);
    std::copy_n(tokens, length, sequence(at) + 1);
    std::fill_n(sequence(at) + 1 + length, longest - length, 0);
  }
};

struct BeamSizes {
  int64_t batch = 0, beams = 0, longest = 0;

  BeamSizes() = default;
  explicit BeamSizes(const Dims& ended) : batch(ended[0]), beams(ended[1]), longest(ended[2] - 1) {}
  int64_t rows() const { return batch * beams; }
  Ended entry(int64_t b, int32_t* sequences, float* scores, const void* length_penalty) const {
    return {sequences + b * beams * (1 + longest), scores + b * beams, beams, longest,
            length_penalty ? *static_cast<const float*>(length_penalty) : 1.0f};
  }
};

// --- BeamStep

enum StepInput : size_t {
  kBest,
  kPlaces,
  kSequences,
  kLength,
  kEnded,
  kEndedScores,
  kDone,
  kLengthPenalty,
  kStepInputs
};
enum StepOutput : size_t {
  kTokens = kStepInputs,
  kFrom,
  kSums,
  kAppended,
  kEndedAfter,
  kEndedScoresAfter,
  kDoneAfter,
  kGoesOn
};

struct BeamState {
  BeamSizes sizes;
  int64_t candidates = 0, vocabulary = 0;
  int32_t end = 0, pad = 0;
  bool early_stopping = false;
};

struct Step {
  const BeamState& s;
  void* const* slots;
  const uint32_t* operands;

  template <class T>
  T* at(size_t i) const {
    return static_cast<T*>(slots[operands[i]]);
  }

  // The beams of an entry that is done matter only for the scores of later iterations, which are as onnxruntime's.
  void pad_entry(int64_t b) const {
    for (int64_t r = b * s.sizes.beams; r < (b + 1) * s.sizes.beams; ++r) {
      at<int32_t>(kTokens)[r] = s.pad;
      at<int64_t>(kFrom)[r] = s.sizes.beams == 1 ? r : 0;
      at<float>(kSums)[r] = 0;
    }
  }

  // A candidate that ends a sequence is kept if it is among the best `beams` candidates. The best others become the
  // beams of the next iteration.
  uint32_t choose(int64_t b, int64_t length, const Ended& ended) const {
    const int64_t beams = s.sizes.beams;
    int64_t chosen = 0;
    for (int64_t j = 0; j < s.candidates && chosen < beams; ++j) {
      const int64_t place = at<const int64_t>(kPlaces)[b * s.candidates + j];
      const float sum = at<const float>(kBest)[b * s.candidates + j];
      if (place >= beams * s.vocabulary) return fail(KernelError::kIndexOutOfRange, place, beams * s.vocabulary);
      const int64_t row = b * beams + place / s.vocabulary;
      const auto token = static_cast<int32_t>(place % s.vocabulary);
      if (token == s.end) {
        if (j < beams) ended.add(at<const int32_t>(kSequences) + row * s.sizes.longest, length, sum);
        continue;
      }
      const int64_t to = b * beams + chosen++;
      at<int32_t>(kTokens)[to] = token;
      at<int64_t>(kFrom)[to] = row;
      at<float>(kSums)[to] = sum;
    }
    return chosen == beams ? 0 : refuse_element({"the number of beams that go on", -1}, chosen, "num_beams");
  }

  bool is_done(int64_t b, int64_t length, const Ended& ended) const {
    if (ended.count() < s.sizes.beams) return false;
    return s.early_stopping || !ended.can_improve(at<const float>(kBest)[b * s.candidates], length);
  }

  void append(int64_t length) const {
    const int64_t longest = s.sizes.longest;
    for (int64_t r = 0; r < s.sizes.rows(); ++r) {
      int32_t* out = at<int32_t>(kAppended) + r * longest;
      std::copy_n(at<const int32_t>(kSequences) + at<const int64_t>(kFrom)[r] * longest, longest, out);
      out[length] = at<const int32_t>(kTokens)[r];
    }
  }
};

uint32_t run_beam_step(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const BeamState*>(state);
  const Step step{s, slots, operands};
  const int64_t length = *step.at<const int64_t>(kLength);
  if (length >= s.sizes.longest) return fail(KernelError::kIndexOutOfRange, length, s.sizes.longest);
  std::copy_n(step.at<const int32_t>(kEnded), s.sizes.rows() * (1 + s.sizes.longest), step.at<int32_t>(kEndedAfter));
  std::copy_n(step.at<const float>(kEndedScores), s.sizes.rows(), step.at<float>(kEndedScoresAfter));
  bool all = true;
  for (int64_t b = 0; b < s.sizes.batch; ++b) {
    const Ended ended = s.sizes.entry(b, step.at<int32_t>(kEndedAfter), step.at<float>(kEndedScoresAfter),
                                      step.at<const void>(kLengthPenalty));
    bool done = step.at<const bool>(kDone)[b];
    if (done) {
      step.pad_entry(b);
    } else {
      if (const uint32_t failed = step.choose(b, length, ended)) return failed;
      done = step.is_done(b, length, ended);
    }
    step.at<bool>(kDoneAfter)[b] = done;
    all = all && done;
  }
  step.append(length);
  *step.at<bool>(kGoesOn) = !all;
  return 0;
}

Status prepare_beam_step(PrepareContext& ctx) {
  auto* s = ctx.make_state<BeamState>();
  const auto& a = ctx.attributes();
  s->sizes = BeamSizes(ctx.inputs[kEnded].dims);
  s->candidates = ctx.inputs[kBest].dims[1];
  s->vocabulary = a.get_int("vocab_size");
  s->end = static_cast<int32_t>(a.get_int("eos_token_id"));
  s->pad = static_cast<int32_t>(a.get_int("pad_token_id"));
  s->early_stopping = a.get_int("early_stopping") == 1;
  if (s->vocabulary < 1 || s->candidates < 2 * s->sizes.beams) {
    return error(Code::kInvalidArgument, "the vocabulary has {} tokens, expected at least {}: two for each of {} beams",
                 s->vocabulary, 2 * s->sizes.beams, s->sizes.beams);
  }
  ctx.set_kernel(run_beam_step, s);
  return {};
}

Status infer_beam_step(InferContext& ctx) {
  if (ctx.has_input(kLengthPenalty)) TREADLE_TRY(check_one_element(ctx, kLengthPenalty, "length_penalty"));
  const Dim rows = ctx.shape(kSequences) ? (*ctx.shape(kSequences))[0] : Dim();
  ctx.set_output(0, ElementType::kInt32, {rows, 1});
  ctx.set_output(1, ElementType::kInt64, {rows});
  ctx.set_output(2, ElementType::kFloat, {rows, 1});
  ctx.set_output(3, ctx.input(kSequences));
  ctx.set_output(4, ctx.input(kEnded));
  ctx.set_output(5, ctx.input(kEndedScores));
  ctx.set_output(6, ctx.input(kDone));
  ctx.set_output(7, ElementType::kBool, Shape());
  return {};
}

// --- BeamEnd

enum EndInput : size_t {
  kFinalSequences,
  kFinalLength,
  kFinalSums,
  kFinalEnded,
  kFinalScores,
  kFinalDone,
  kFinalPenalty,
  kEndInputs
};

struct EndState {
  BeamSizes sizes;
  int32_t pad = 0;
  uint32_t ended = 0, scores = 0;  // scratch
};

uint32_t run_beam_end(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const EndState*>(state);
  const auto [batch, beams, longest] = s.sizes;
  auto* scratch = static_cast<int32_t*>(slots[operands[kEndInputs + 2]]);
  auto* out = static_cast<int32_t*>(slots[operands[kEndInputs]]);
  auto* scores = static_cast<float*>(slots[operands[kEndInputs + 1]]);
  const auto* sequences = static_cast<const int32_t*>(slots[operands[kFinalSequences]]);
  const auto* sums = static_cast<const float*>(slots[operands[kFinalSums]]);
  const int64_t length = *static_cast<const int64_t*>(slots[operands[kFinalLength]]);
  std::copy_n(static_cast<const int32_t*>(slots[operands[kFinalEnded]]), s.sizes.rows() * (1 + longest), scratch);
  std::copy_n(static_cast<const float*>(slots[operands[kFinalScores]]), s.sizes.rows(), scores);
  for (int64_t b = 0; b < batch; ++b) {
    const Ended ended = s.sizes.entry(b, scratch, scores, slots[operands[kFinalPenalty]]);
    const bool done = static_cast<const bool*>(slots[operands[kFinalDone]])[b];
    for (int64_t r = b * beams; !done && r < (b + 1) * beams; ++r) ended.add(sequences + r * longest, length, sums[r]);
    for (int64_t k = 0; k < beams; ++k) {
      const int32_t* sequence = ended.sequence(k);
      int32_t* to = out + (b * beams + k) * longest;
      std::copy_n(sequence + 1, sequence[0], to);
      std::fill_n(to + sequence[0], longest - sequence[0], s.pad);
    }
  }
  return 0;
}

Status prepare_beam_end(PrepareContext& ctx) {
  auto* s = ctx.make_state<EndState>();
  s->sizes = BeamSizes(ctx.inputs[kFinalEnded].dims);
  s->pad = static_cast<int32_t>(ctx.attributes().get_int("pad_token_id"));
  ctx.scratch_bytes = static_cast<size_t>(ctx.inputs[kFinalEnded].element_count()) * sizeof(int32_t) + 64;
  ctx.set_kernel(run_beam_end, s);
  return {};
}

Status infer_beam_end(InferContext& ctx) {
  const Shape* ended = ctx.shape(kFinalEnded);
  const Shape all = ended ? *ended : Shape{Dim(), Dim(), Dim()};
  ctx.set_output(0, ElementType::kInt32, {all[0], all[1], all[2] - 1});
  ctx.set_output(1, ElementType::kFloat, {all[0], all[1]});
  return {};
}

}  // namespace

}  // namespace treadle

TREADLE_OP(BeamStep, "treadle") {
  op.since(1)
      .in("best", "tensor(float)")
      .in("places", "tensor(int64)")
      .in("sequences", "tensor(int32)")
      .in("length", "tensor(int64)")
      .in("ended", "tensor(int32)")
      .in("ended_scores", "tensor(float)")
      .in("done", "tensor(bool)")
      .in("length_penalty", "tensor(float)", Arity::kOptional)
      .out("tokens", "tensor(int32)")
      .out("from", "tensor(int64)")
      .out("sums", "tensor(float)")
      .out("appended", "tensor(int32)")
      .out("ended_after", "tensor(int32)")
      .out("ended_scores_after", "tensor(float)")
      .out("done_after", "tensor(bool)")
      .out("goes_on", "tensor(bool)")
      .required("vocab_size", ir::AttributeKind::kInt)
      .required("eos_token_id", ir::AttributeKind::kInt)
      .required("pad_token_id", ir::AttributeKind::kInt)
      .attr("early_stopping", 0);
  op.infer(infer_beam_step).prepare(prepare_beam_step).can_fail().no_axes("it goes on while any batch entry does");
}

TREADLE_OP(BeamEnd, "treadle") {
  op.since(1)
      .in("sequences", "tensor(int32)")
      .in("length", "tensor(int64)")
      .in("sums", "tensor(float)")
      .in("ended", "tensor(int32)")
      .in("ended_scores", "tensor(float)")
      .in("done", "tensor(bool)")
      .in("length_penalty", "tensor(float)", Arity::kOptional)
      .out("best", "tensor(int32)")
      .out("scores", "tensor(float)")
      .required("pad_token_id", ir::AttributeKind::kInt);
  op.infer(infer_beam_end).prepare(prepare_beam_end).no_axes("its sequences belong to a search");
}
