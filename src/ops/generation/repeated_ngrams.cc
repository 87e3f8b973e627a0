// NGramRepeatBlock: gives tokens that would repeat an n-gram of the row the score minus infinity. BifurcationDetector:
// how many predicted tokens agree with the source, and where the source continues in the same way as the result.

#include <algorithm>
#include <limits>

#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/operands.h"
#include "op/pieces.h"
#include "op/refused_element.h"
#include "ops/costs.h"

namespace treadle::generation {

namespace {

// ---- NGramRepeatBlock

Status infer_blocked(InferContext& ctx) {
  const int64_t n = ctx.attributes().get_int("ngram_size");
  if (n < 1) return error(Code::kInvalidModel, "attribute ngram_size is {}, expected 1 or more", n);
  const Shape *tokens = ctx.shape(0), *scores = ctx.shape(1);
  for (const Shape* shape : {tokens, scores}) {
    if (!shape || shape->size() == 2) continue;
    return error(Code::kInvalidArgument, "{} has shape {}, expected two dimensions",
                 shape == tokens ? "input_ids" : "scores", to_string(*shape));
  }
  if (tokens && scores && differ((*tokens)[0], (*scores)[0])) {
    return error(Code::kInvalidArgument, "input_ids and scores have shapes {} and {}, expected equal numbers of rows",
                 to_string(*tokens), to_string(*scores));
  }
  ctx.set_output(0, ctx.input(1));
  return {};
}

struct Blocked {
  int64_t rows = 0, length = 0, vocabulary = 0, n = 0;
};

uint32_t run_blocked(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const Blocked*>(state);
  const auto* tokens = static_cast<const int64_t*>(slots[operands[0]]);
  auto* scores = static_cast<float*>(slots[operands[2]]);
  const auto bytes = static_cast<size_t>(s.rows * s.vocabulary) * sizeof(float);
  if (!copy_in_pieces(scores, slots[operands[1]], bytes)) return fail(KernelError::kStopped);
  const double place_ns = costs::kNgramBlockTokenNs * static_cast<double>(s.n);
  StopPoll stop;
  for (int64_t row = 0; row < s.rows; ++row, tokens += s.length, scores += s.vocabulary) {
    const int64_t* tail = tokens + (s.length + 1 - s.n);
    const uint32_t failed = kernel_in_pieces(
        std::max<int64_t>(s.length - s.n + 1, 0), place_ns, stop, [&](int64_t begin, int64_t end) -> uint32_t {
          for (int64_t i = begin; i < end; ++i) {
            if (!std::equal(tokens + i, tokens + i + s.n - 1, tail)) continue;
            const int64_t token = tokens[i + s.n - 1];
            if (token < 0 || token >= s.vocabulary)
              return refuse_element({"input_ids", row * s.length + i + s.n - 1}, token, 0, s.vocabulary - 1);
            scores[token] = -std::numeric_limits<float>::infinity();
          }
          return 0;
        });
    if (failed) return failed;
  }
  return 0;
}

Status prepare_blocked(PrepareContext& ctx) {
  const Dims &tokens = ctx.inputs[0].dims, &scores = ctx.inputs[1].dims;
  auto* s = ctx.make_state<Blocked>();
  // An n-gram that is longer than the rows repeats nowhere.
  *s = {scores[0], tokens[1], scores[1], std::min(ctx.attributes().get_int("ngram_size"), tokens[1] + 1)};
  const int64_t places = s->rows * std::max<int64_t>(s->length - s->n + 1, 0);
  ctx.cost_ns = costs::kNgramBlockTokenNs * static_cast<double>(places) * static_cast<double>(s->n);
  ctx.set_kernel(run_blocked, s);
  return {};
}

// ---- BifurcationDetector

enum Input : size_t { kSource, kCurrent, kPreviousMatch, kPredicted };

Status infer_bifurcation(InferContext& ctx) {
  const int64_t least = ctx.attributes().get_int("min_ngram_size"), most = ctx.attributes().get_int("max_ngram_size");
  if (least < 1 || most < least) {
    return error(Code::kInvalidModel,
                 "attributes min_ngram_size and max_ngram_size are {} and {}, expected 1 or more, ascending", least,
                 most);
  }
  for (const size_t i : {kSource, kCurrent, kPredicted}) {
    const Shape* shape = ctx.shape(i);
    if (!shape || shape->size() == 1) continue;
    return error(Code::kInvalidArgument, "{} have shape {}, expected one dimension", ctx.node.version->inputs[i].name,
                 to_string(*shape));
  }
  if (const Dim count = length_of(ctx, kPreviousMatch); differ(count, Dim(1))) {
    return error(Code::kInvalidArgument, "prev_suffix_match_idx has {} elements, expected 1", count.value());
  }
  const Shape* current = ctx.shape(kCurrent);
  ctx.set_output(0, ElementType::kInt64, {ctx.has_input(kPredicted) || !current ? Dim() : (*current)[0]});
  ctx.set_output(1, ctx.input(kPreviousMatch));
  return {};
}

struct Tokens {
  const int64_t* data = nullptr;
  int64_t count = 0;

  explicit Tokens(const Tensor& t) : data(t.data<int64_t>()), count(t.element_count()) {}
  const int64_t* end() const { return data + count; }
};

// How many predicted tokens are taken: those that agree with the source, and the first one that does not.
Result<int64_t> taken(const Tokens& source, const Tokens& predicted, int64_t match) {
  if (match < 0 || match > source.count) {
    return error(Code::kInvalidArgument, "prev_suffix_match_idx is {}, expected 0 to {}", match, source.count);
  }
  if (predicted.count != source.count + 1 - match) {
    return error(Code::kInvalidArgument, "{} pred_tokens, expected {}: one more than src_tokens from {} on",
                 predicted.count, source.count + 1 - match, match);
  }
  return std::mismatch(source.data + match, source.end(), predicted.data).second - predicted.data + 1;
}

// The first position from `from` on at which `text` has the last n tokens of `result`; -1: none.
int64_t find(const Tokens& text, int64_t from, const Tokens& result, int64_t n, StopPoll& stop) {
  for (int64_t at = from; at + n <= text.count; ++at) {
    if (std::equal(result.end() - n, result.end(), text.data + at)) return at;
    if (stop.after(costs::kNgramBlockTokenNs * static_cast<double>(n))) break;
  }
  return -1;
}

// The position in the source behind the only occurrence of the result's last tokens. While there are several
// occurrences, more tokens are compared. -1: no occurrence, or several up to the end.
Result<int64_t> find_suffix(const Tokens& source, const Tokens& result, int64_t least, int64_t most) {
  int64_t match = -1;
  StopPoll stop;
  for (int64_t n = least; n <= std::min(most, result.count); ++n) {
    const int64_t at = find(source, 0, result, n, stop);
    if (at >= 0) match = at + n;
    const bool is_last = at < 0 || match >= source.count;
    if (!is_last && find(source, at + 1, result, n, stop) >= 0) match = -1;
    if (stop.after(costs::kNgramBlockTokenNs)) return stopped();
    if (is_last) break;
  }
  return match;
}

Status compute_bifurcation(ComputeContext& ctx) {
  const Tokens source(ctx.tensor(kSource)), current(ctx.tensor(kCurrent));
  int64_t more = 0;
  if (ctx.has_input(kPredicted)) {
    TREADLE_ASSIGN(more, taken(source, Tokens(ctx.tensor(kPredicted)), ctx.tensor(kPreviousMatch).data<int64_t>()[0]));
  }
  TREADLE_ASSIGN(Tensor * tokens, ctx.allocate(0, ElementType::kInt64, {current.count + more}));
  int64_t* behind = std::copy_n(current.data, current.count, tokens->mutable_data<int64_t>());
  if (more > 0) std::copy_n(ctx.tensor(kPredicted).data<int64_t>(), more, behind);
  TREADLE_ASSIGN(const int64_t match, find_suffix(source, Tokens(*tokens), ctx.attributes().get_int("min_ngram_size"),
                                                  ctx.attributes().get_int("max_ngram_size")));
  TREADLE_ASSIGN(Tensor * place, ctx.allocate(1, ElementType::kInt64, ctx.tensor(kPreviousMatch).dims()));
  place->mutable_data<int64_t>()[0] = match;
  return {};
}

}  // namespace

}  // namespace treadle::generation

TREADLE_OP(NGramRepeatBlock, "com.microsoft") {
  op.since(1)
      .in("input_ids", "Tid")
      .in("scores", "T")
      .out("scores_out", "T")
      .required("ngram_size", ir::AttributeKind::kInt)
      .type("Tid", types::kInt64s)
      .type("T", types::kFloat32s);
  op.infer(generation::infer_blocked).prepare(generation::prepare_blocked).can_fail().axes(axes::entries_of<0b11>);
}

TREADLE_OP(BifurcationDetector, "com.microsoft") {
  op.since(1)
      .in("src_tokens", "T")
      .in("cur_tokens", "T")
      .in("prev_suffix_match_idx", "T")
      .in("pred_tokens", "T", Arity::kOptional)
      .out("tokens", "T")
      .out("suffix_match_idx", "T")
      .attr("max_ngram_size", 3)
      .attr("min_ngram_size", 1)
      .type("T", types::kInt64s);
  op.infer(generation::infer_bifurcation)
      .compute(generation::compute_bifurcation)
      .can_fail()
      .no_axes("it searches all tokens");
}
