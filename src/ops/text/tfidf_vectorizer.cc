// TfIdfVectorizer: how often each n-gram of a pool occurs in a row of words.
//
// The pool is a trie over its words: a row is walked from each of its words on, and every node that ends an n-gram on
// the way counts. With skips, the words of an n-gram stand the same distance from each other; single words are counted
// once, whatever the distance.

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "op/op_def.h"
#include "ops/ml/dictionary.h"

namespace treadle::text {

namespace {

enum class Weighting : uint8_t { kCount, kPresence, kScaledCount };

class Grams {
 public:
  int64_t columns = 0;
  Weighting weighting = Weighting::kCount;
  int64_t shortest = 1, longest = 1, skips = 0;

  Status read(const ir::Attributes& attributes);
  ElementType word_type() const { return words_.type(); }
  // The n-grams of rows of word numbers: `y` [rows][columns].
  void count(const int64_t* numbers, int64_t rows, int64_t length, float* y) const;
  // Numbers of words in the pool, -1 for others.
  template <class Word>
  void number(const Word* words, int64_t count, int64_t* numbers) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    uint32_t gram = kNone;  // that ends here
    bool inner = false;     // longer ones go on
  };

  Status read_weights(const ir::Attributes& attributes, size_t grams);
  Status read_pool(const ir::Attributes& attributes, const std::vector<int64_t>& pool);
  uint32_t child(uint32_t node, int64_t word) const {
    const auto found = edges_.find(key(node, word));
    return found == edges_.end() ? kNone : found->second;
  }
  static uint64_t key(uint32_t node, int64_t word) { return uint64_t{node} << 32 | static_cast<uint32_t>(word); }
  void add(const int64_t* words, int64_t length, uint32_t gram);
  void walk(const int64_t* row, int64_t length, int64_t start, int64_t distance, int64_t least,
            std::vector<int64_t>& counts) const;

  ml::Dictionary words_;
  std::vector<Node> nodes_ = {Node()};
  std::unordered_map<uint64_t, uint32_t> edges_;
  std::vector<int64_t> columns_of_;  // by n-gram
  std::vector<float> weights_;       // by n-gram, in the pool's order; not by column
};

void Grams::add(const int64_t* words, int64_t length, uint32_t gram) {
  uint32_t at = 0;
  for (int64_t i = 0; i < length; ++i) {
    const auto [edge, fresh] = edges_.try_emplace(key(at, words[i]), static_cast<uint32_t>(nodes_.size()));
    if (fresh) nodes_.emplace_back();
    nodes_[at].inner = true;
    at = edge->second;
  }
  nodes_[at].gram = gram;
}

Status Grams::read_weights(const ir::Attributes& attributes, size_t grams) {
  const std::string_view mode = attributes.get_string("mode");
  const auto weights = attributes.get_floats("weights");
  if (mode != "TF" && mode != "IDF" && mode != "TFIDF") {
    return error(Code::kInvalidModel, "attribute mode is '{}', expected TF, IDF or TFIDF", mode);
  }
  weighting = mode == "TF" ? Weighting::kCount : mode == "IDF" ? Weighting::kPresence : Weighting::kScaledCount;
  if (!weights.empty() && weights.size() != grams) {
    return error(Code::kInvalidModel, "attribute weights has {} entries for {} n-grams", weights.size(), grams);
  }
  weights_.assign(weights.begin(), weights.end());
  weights_.resize(grams, 1.0f);
  if (mode == "TF") std::fill(weights_.begin(), weights_.end(), 1.0f);
  return {};
}

// `pool`: the numbers of its words. The n-grams of n words begin at ngram_counts[n - 1].
Status Grams::read_pool(const ir::Attributes& attributes, const std::vector<int64_t>& pool) {
  const auto begins = attributes.get_ints("ngram_counts");
  size_t gram = 0;
  for (size_t n = 1; n <= begins.size(); ++n) {
    const int64_t begin = begins[n - 1];
    const int64_t end = n < begins.size() ? begins[n] : static_cast<int64_t>(pool.size());
    const auto length = static_cast<int64_t>(n);
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) || (end - begin) % length != 0) {
      return error(Code::kInvalidModel, "attribute ngram_counts gives [{}, {}) of {} words to {}-grams", begin, end,
                   pool.size(), n);
    }
    for (int64_t at = begin; at < end; at += length, ++gram) {
      if (gram >= columns_of_.size()) break;
      if (length < shortest || length > longest) continue;
      add(pool.data() + at, length, static_cast<uint32_t>(gram));
    }
  }
  if (gram == columns_of_.size()) return {};
  return error(Code::kInvalidModel, "attribute ngram_indexes has {} entries, the pool another number of n-grams",
               columns_of_.size());
}

Status Grams::read(const ir::Attributes& attributes) {
  const auto strings = attributes.get_strings("pool_strings");
  const auto integers = attributes.get_ints("pool_int64s");
  const auto columns_of = attributes.get_ints("ngram_indexes");
  shortest = attributes.get_int("min_gram_length");
  longest = attributes.get_int("max_gram_length");
  skips = attributes.get_int("max_skip_count");
  if (strings.empty() == integers.empty()) {
    return error(Code::kInvalidModel, "expected one of the attributes pool_strings and pool_int64s");
  }
  if (shortest < 1 || longest < shortest || skips < 0) {
    return error(Code::kInvalidModel, "n-grams of {} to {} words with {} skips cannot be", shortest, longest, skips);
  }
  if (columns_of.empty()) return error(Code::kInvalidModel, "attribute ngram_indexes is empty");
  for (const int64_t column : columns_of) {
    if (column < 0 || column >= INT32_MAX)
      return error(Code::kInvalidModel, "attribute ngram_indexes holds {}", column);
    columns = std::max(columns, column + 1);
  }
  columns_of_.assign(columns_of.begin(), columns_of.end());
  TREADLE_TRY(read_weights(attributes, columns_of_.size()));
  const Tensor pool = strings.empty() ? ml::to_tensor(integers) : ml::to_tensor(strings);
  words_ = ml::Dictionary(pool);
  std::vector<int64_t> numbers(static_cast<size_t>(pool.element_count()));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = words_.find(pool.raw(), static_cast<int64_t>(i));
  return read_pool(attributes, numbers);
}

template <class Word>
void Grams::number(const Word* words, int64_t count, int64_t* numbers) const {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<Word, String>) {
      numbers[i] = words_.find(std::string_view(words[i]));
    } else {
      numbers[i] = words_.find(static_cast<int64_t>(words[i]));
    }
  }
}

// The n-grams of at least `least` words that begin at `start`.
void Grams::walk(const int64_t* row, int64_t length, int64_t start, int64_t distance, int64_t least,
                 std::vector<int64_t>& counts) const {
  uint32_t node = 0;
  int64_t at = start;
  for (int64_t n = 1; n <= longest && nodes_[node].inner && at < length; ++n, at += distance) {
    if (row[at] < 0) return;
    node = child(node, row[at]);
    if (node == kNone) return;
    if (n >= least && nodes_[node].gram != kNone) ++counts[nodes_[node].gram];
  }
}

void Grams::count(const int64_t* numbers, int64_t rows, int64_t length, float* y) const {
  std::fill_n(y, rows * columns, 0.0f);
  std::vector<int64_t> counts(columns_of_.size());
  const int64_t distances = std::min(skips, std::max<int64_t>(length, 1) - 1) + 1;
  for (int64_t r = 0; r < rows; ++r, numbers += length, y += columns) {
    std::fill(counts.begin(), counts.end(), 0);
    for (int64_t distance = 1; distance <= distances; ++distance) {
      const int64_t least = distance > 1 ? std::max<int64_t>(shortest, 2) : shortest;
      for (int64_t start = 0; start < length; ++start) walk(numbers, length, start, distance, least, counts);
    }
    for (size_t g = 0; g < counts.size(); ++g) {
      if (counts[g] == 0) continue;
      const int64_t times = weighting == Weighting::kPresence ? 1 : counts[g];
      y[columns_of_[g]] += static_cast<float>(times) * weights_[g];
    }
  }
}

Result<Grams> parse_tfidf_vectorizer(const ir::NodeInfo& node) {
  Grams grams;
  TREADLE_TRY(grams.read(node.attributes));
  return grams;
}

Status infer_tfidf_vectorizer(InferContext& ctx) {
  const Grams& grams = ctx.node.parsed_as<Grams>();
  const bool strings = is_string(grams.word_type());
  if (is_string(ctx.element(0)) != strings) {
    return error(Code::kInvalidModel, "the pool is of type {}, X is of type {}", name(grams.word_type()),
                 name(ctx.element(0)));
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
};

GramsState make_state(const Grams& grams, const Dims& dims) {
  return {&grams, dims.size() == 2 ? dims[0] : 1, dims.empty() ? 1 : dims.back()};
}

template <class Word>
uint32_t run_tfidf_vectorizer(const void* state, void* const* slots, const uint32_t* operands) {
  const auto& s = *static_cast<const GramsState*>(state);
  auto* numbers = static_cast<int64_t*>(slots[operands[2]]);
  s.grams->number(static_cast<const Word*>(slots[operands[0]]), s.rows * s.length, numbers);
  s.grams->count(numbers, s.rows, s.length, static_cast<float*>(slots[operands[1]]));
  return 0;
}

Status prepare_tfidf_vectorizer(PrepareContext& ctx) {
  const Operand& x = ctx.inputs[0];
  const auto* s = ctx.make_state<GramsState>(make_state(ctx.node.parsed_as<Grams>(), x.dims));
  ctx.scratch_bytes = static_cast<size_t>(s->rows * s->length) * sizeof(int64_t);
  ctx.set_kernel(x.type == ElementType::kInt32 ? run_tfidf_vectorizer<int32_t> : run_tfidf_vectorizer<int64_t>, s);
  return {};
}

// Where words are strings.
Status compute_tfidf_vectorizer(ComputeContext& ctx) {
  const Tensor& x = ctx.tensor(0);
  const Grams& grams = ctx.node.parsed_as<Grams>();
  const GramsState s = make_state(grams, x.dims());
  Dims dims;
  if (x.rank() == 2) dims.push_back(s.rows);
  dims.push_back(grams.columns);
  TREADLE_ASSIGN(Tensor * y, ctx.allocate(0, ElementType::kFloat, std::move(dims)));
  std::vector<int64_t> numbers(static_cast<size_t>(x.element_count()));
  grams.number(x.data<String>(), x.element_count(), numbers.data());
  grams.count(numbers.data(), s.rows, s.length, y->mutable_data<float>());
  return {};
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
      .compute(text::compute_tfidf_vectorizer);
}
