// TfIdfVectorizer: how often each n-gram of a pool (ops/text/ngrams.h) occurs in a row of words.

#include "base/counted.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/pieces.h"
#include "ops/text/ngrams.h"

namespace treadle::text {

namespace {

Result<Grams> parse_tfidf_vectorizer(const ir::NodeInfo& node) {
  Grams grams;
  TREADLE_TRY(grams.read(node.attributes));
  return grams;
}

Status infer_tfidf_vectorizer(InferContext& ctx) {
  const Grams& grams = ctx.node.parsed_as<Grams>();
  const bool strings = is_string(grams.word_type());
  if (is_string(ctx.element(0)) != strings) {
    return error(Code::kInvalidModel, "X is of type {}, expected that of the pool, {}", name(ctx.element(0)),
                 name(grams.word_type()));
  }
  const Shape* x = ctx.shape(0);
  if (!x) return ctx.set_output(0, ElementType::kFloat), Status();
  if (x->size() > 2) {
    return error(Code::kInvalidArgument, "X has shape {}, expected [C] or [N,C]", to_string(*x));
  }
  Shape y;
  if (x->size() == 2) y.push_back((*x)[0]);
  y.emplace_back(grams.columns);
  ctx.set_output(0, ElementType::kFloat, std::move(y));
  return {};
}

struct GramsState {
  const Grams* grams;
  int64_t rows, length;

  // Numbers of the words, and working memory of counting.
  size_t scratch() const { return static_cast<size_t>(rows * length) + grams->scratch(length); }
};

GramsState make_state(const Grams& grams, const Dims& dims) {
  return {&grams, dims.size() == 2 ? dims[0] : 1, dims.empty() ? 1 : dims.back()};
}

template <class Word>
uint32_t run_tfidf_vectorizer(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GramsState*>(state);
  auto* numbers = static_cast<int64_t*>(slots[operands[2]]);
  const int64_t count = s.rows * s.length;
  return unless_stopped(
      s.grams->number(static_cast<const Word*>(slots[operands[0]]), count, numbers) &&
      s.grams->count(numbers, s.rows, s.length, numbers + count, static_cast<float*>(slots[operands[1]])));
}

Status prepare_tfidf_vectorizer(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const auto* s = ctx.make_state<GramsState>(make_state(ctx.node.parsed_as<Grams>(), x.dims));
  ctx.scratch_bytes = s->scratch() * sizeof(int64_t);
  ctx.set_kernel(x.type == ElementType::kInt32 ? run_tfidf_vectorizer<int32_t> : run_tfidf_vectorizer<int64_t>, s);
  return {};
}

// Only if words are strings.
Status compute_tfidf_vectorizer(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const Grams& grams = ctx.node.parsed_as<Grams>();
  const GramsState s = make_state(grams, x.dims());
  Dims dims;
  if (x.rank() == 2) dims.push_back(s.rows);
  dims.push_back(grams.columns);
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kFloat, std::move(dims)));
  CountedVector<int64_t> scratch(s.scratch());
  int64_t* const numbers = scratch.data();
  const int64_t count = x.element_count();
  const bool done = grams.number(x.data<String>(), count, numbers) &&
                    grams.count(numbers, s.rows, s.length, numbers + count, y->mutable_data<float>());
  return done ? Status() : stopped();
}

}  // namespace

}  // namespace treadle::text

TREADLE_OP(TfIdfVectorizer, "") {
  op.since(9)
      .in("X", "T")
      .out("Y", "T1")
      .required("max_gram_length", ir::AttributeKind::kInt)
      .required("max_skip_count", ir::AttributeKind::kInt)
      .required("min_gram_length", ir::AttributeKind::kInt)
      .required("mode", ir::AttributeKind::kString)
      .required("ngram_counts", ir::AttributeKind::kInts)
      .required("ngram_indexes", ir::AttributeKind::kInts)
      .optional("pool_int64s", ir::AttributeKind::kInts)
      .optional("pool_strings", ir::AttributeKind::kStrings)
      .optional("weights", ir::AttributeKind::kFloats)
      .type("T", tensors(ElementType::kString, ElementType::kInt32, ElementType::kInt64))
      .type("T1", tensors(ElementType::kFloat));
  op.parse<text::parse_tfidf_vectorizer>()
      .infer(text::infer_tfidf_vectorizer)
      .prepare(text::prepare_tfidf_vectorizer)
      .compute(text::compute_tfidf_vectorizer)
      .axes(axes::rows_of_table);
}
