// TfIdfVectorizer: how often each n-gram of a pool occurs in a row of words.
//
// The pool is a trie over its words: a row is walked from each of its words on, and every node that ends an n-gram on
// the way counts. With skips, the words of an n-gram stand the same distance from each other; single words are counted
// once, whatever the distance.
//
// Many distances are not walked one by one (Occurrences): pairs of words within reach of each other are counted from
// the places where words stand, and longer n-grams either by walking on from those pairs or, where there are many, for
// 64 places at once.

#include <algorithm>
#include <bit>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/counted.h"
#include "op/axis_rules.h"
#include "op/op_def.h"
#include "op/pieces.h"
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
  // What count() works in: so many numbers.
  size_t scratch(int64_t length) const;
  // The n-grams of rows of word numbers: `y` [rows][columns]. False: it was told to stop.
  bool count(const int64_t* numbers, int64_t rows, int64_t length, int64_t* scratch, float* y) const;
  // Numbers of words in the pool, -1 for others. False: it was told to stop.
  template <class Word>
  bool number(const Word* words, int64_t count, int64_t* numbers) const;

 private:
  friend class Occurrences;
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    uint32_t gram = kNone;  // that ends here
    bool inner = false;     // longer ones go on
    double steps = 0;       // words of all n-grams of more than two that end here or below
  };
  struct Edge {
    int64_t word;
    uint32_t to;
  };

  Status read_weights(const ir::Attributes& attributes, size_t grams);
  Status read_pool(const ir::Attributes& attributes, const std::vector<int64_t>& pool);
  uint32_t child(uint32_t node, int64_t word) const {
    const auto found = edges_.find(key(node, word));
    return found == edges_.end() ? kNone : found->second;
  }
  static uint64_t key(uint32_t node, int64_t word) { return uint64_t{node} << 32 | static_cast<uint32_t>(word); }
  void add(const int64_t* words, int64_t length, uint32_t gram);
  void list_edges();
  void walk(const int64_t* row, int64_t length, int64_t start, int64_t distance, int64_t least, int64_t* counts) const;
  bool count_by_walking(const int64_t* row, int64_t length, int64_t distances, int64_t* counts, StopPoll& stop) const;

  ml::Dictionary words_;
  std::vector<Node> nodes_ = {Node()};
  std::unordered_map<uint64_t, uint32_t> edges_;
  // The same by the node that they leave, edges [first_edge_[n], first_edge_[n + 1]).
  std::vector<Edge> edge_list_;
  std::vector<uint32_t> first_edge_;
  size_t pairs_ = 0;                 // nodes two words deep
  size_t depth_ = 0;                 // of the trie
  size_t pool_size_ = 0;             // words of it
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

void Grams::list_edges() {
  first_edge_.assign(nodes_.size() + 1, 0);
  for (const auto& [key, to] : edges_) ++first_edge_[(key >> 32) + 1];
  for (size_t n = 0; n < nodes_.size(); ++n) first_edge_[n + 1] += first_edge_[n];
  std::vector<uint32_t> next(first_edge_.begin(), first_edge_.end() - 1);
  std::vector<uint32_t> parent(nodes_.size()), depth(nodes_.size());
  edge_list_.resize(edges_.size());
  for (const auto& [key, to] : edges_) {
    const auto from = static_cast<uint32_t>(key >> 32);
    edge_list_[next[from]++] = {static_cast<int64_t>(key & UINT32_MAX), to};
    parent[to] = from;
  }
  // A node comes after its parent.
  for (uint32_t n = 1; n < nodes_.size(); ++n) {
    depth[n] = depth[parent[n]] + 1;
    pairs_ += depth[n] == 2;
    depth_ = std::max<size_t>(depth_, depth[n]);
  }
  for (auto n = static_cast<uint32_t>(nodes_.size() - 1); n > 0; --n) {
    if (depth[n] > 2 && nodes_[n].gram != kNone) nodes_[n].steps += depth[n];
    nodes_[parent[n]].steps += nodes_[n].steps;
  }
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
  if (gram == columns_of_.size()) return list_edges(), Status();
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
  pool_size_ = numbers.size();
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = words_.find(pool.raw(), static_cast<int64_t>(i));
  return read_pool(attributes, numbers);
}

template <class Word>
bool Grams::number(const Word* words, int64_t count, int64_t* numbers) const {
  constexpr double kFindNs = 20;
  return in_pieces(count, kFindNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<Word, String>) {
        numbers[i] = words_.find(std::string_view(words[i]));
      } else {
        numbers[i] = words_.find(static_cast<int64_t>(words[i]));
      }
    }
  });
}

// About what it takes to look at a place in a row, and to go from one node to the next.
constexpr double kPlaceNs = 2, kStepNs = 10;

// The n-grams of at least `least` words that begin at `start`.
void Grams::walk(const int64_t* row, int64_t length, int64_t start, int64_t distance, int64_t least,
                 int64_t* counts) const {
  uint32_t node = 0;
  int64_t at = start;
  for (int64_t n = 1; n <= longest && nodes_[node].inner && at < length; ++n, at += distance) {
    if (row[at] < 0) return;
    node = child(node, row[at]);
    if (node == kNone) return;
    if (n >= least && nodes_[node].gram != kNone) ++counts[nodes_[node].gram];
  }
}

bool Grams::count_by_walking(const int64_t* row, int64_t length, int64_t distances, int64_t* counts,
                             StopPoll& stop) const {
  for (int64_t distance = 1; distance <= distances; ++distance) {
    const int64_t least = distance > 1 ? std::max<int64_t>(shortest, 2) : shortest;
    const auto walk_from = [&](int64_t begin, int64_t end) {
      for (int64_t start = begin; start < end; ++start) walk(row, length, start, distance, least, counts);
    };
    if (!in_pieces(length, kPlaceNs + 2 * kStepNs, stop, walk_from)) return false;
  }
  return true;
}

// Where the words of the pool stand in one row, and what follows from that.
class Occurrences {
 public:
  Occurrences(const Grams& grams, const int64_t* row, int64_t length, int64_t distances, int64_t* counts,
              int64_t* scratch, StopPoll& stop)
      : grams_(grams),
        row_(row),
        length_(length),
        distances_(distances),
        counts_(counts),
        first_(scratch),
        places_(first_ + grams.pool_size_ + 1),
        masks_(reinterpret_cast<uint64_t*>(places_ + length)),
        mask_words_(mask_words(length)),
        stop_(stop) {}

  // Of places and masks.
  static size_t scratch(const Grams& grams, int64_t length) {
    return grams.pool_size_ + 1 + static_cast<size_t>(length) + grams.depth_ * mask_words(length);
  }

  bool find() {
    std::fill_n(first_, grams_.pool_size_ + 1, 0);
    const auto count = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (row_[i] >= 0) ++first_[row_[i] + 1];
      }
    };
    const auto place = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (row_[i] >= 0) places_[first_[row_[i]]++] = i;
      }
    };
    if (!in_pieces(length_, kPlaceNs, stop_, count)) return false;
    for (size_t w = 0; w < grams_.pool_size_; ++w) first_[w + 1] += first_[w];
    if (!in_pieces(length_, kPlaceNs, stop_, place)) return false;
    std::copy_backward(first_, first_ + grams_.pool_size_, first_ + grams_.pool_size_ + 1);
    first_[0] = 0;
    return true;
  }

  // About what counting pairs takes.
  double pairs_ns() const {
    double places = 0;
    for_each_pair([&](int64_t a, int64_t b, uint32_t) {
      places += static_cast<double>(1 + places_of(a).size() + places_of(b).size());
      return true;
    });
    return kPlaceNs * places;
  }

  bool count() {
    for (const Grams::Edge& edge : edges_of(0)) {
      const uint32_t gram = grams_.nodes_[edge.to].gram;
      if (gram != Grams::kNone) counts_[gram] += static_cast<int64_t>(places_of(edge.word).size());
    }
    return for_each_pair([&](int64_t a, int64_t b, uint32_t node) {
      int64_t pairs = 0;
      if (!count_pair(a, b, pairs)) return false;
      const Grams::Node& found = grams_.nodes_[node];
      if (found.gram != Grams::kNone) counts_[found.gram] += pairs;
      if (pairs == 0 || !found.inner) return true;
      const double many = static_cast<double>(std::min(distances_, (length_ - 1) / 2)) * kMaskNs *
                          static_cast<double>(mask_words_) * found.steps;
      if (static_cast<double>(pairs) * kStepNs < many) return walk_on(a, b, node);
      set_mask(0, a);
      set_mask(1, b);
      return count_masked(node, 2);
    });
  }

 private:
  static constexpr double kMaskNs = 0.7;  // for 64 places of a word of an n-gram

  static size_t mask_words(int64_t length) { return static_cast<size_t>(length) / 64 + 2; }

  std::span<const Grams::Edge> edges_of(uint32_t node) const {
    return std::span(grams_.edge_list_)
        .subspan(grams_.first_edge_[node], grams_.first_edge_[node + 1] - grams_.first_edge_[node]);
  }
  std::span<const int64_t> places_of(int64_t word) const {
    return {places_ + first_[word], places_ + first_[word + 1]};
  }

  // fn(first word, second word, node), until it returns false.
  template <class Fn>
  bool for_each_pair(Fn&& fn) const {
    for (const Grams::Edge& a : edges_of(0)) {
      for (const Grams::Edge& b : edges_of(a.to)) {
        if (!fn(a.word, b.word, b.to)) return false;
      }
    }
    return true;
  }

  // How often b stands behind a, within reach.
  bool count_pair(int64_t a, int64_t b, int64_t& pairs) {
    const auto from = places_of(a), to = places_of(b);
    size_t behind = 0, beyond = 0;  // of `to`: the first behind the place in `from`, and the first out of its reach
    return in_pieces(static_cast<int64_t>(from.size()), 2 * kPlaceNs, stop_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t place = from[static_cast<size_t>(i)];
        while (behind < to.size() && to[behind] <= place) ++behind;
        while (beyond < to.size() && to[beyond] - place <= distances_) ++beyond;
        pairs += static_cast<int64_t>(std::max(beyond, behind) - behind);
      }
    });
  }

  // Longer n-grams, from every pair that their first two words make.
  bool walk_on(int64_t a, int64_t b, uint32_t pair) {
    const auto from = places_of(a), to = places_of(b);
    size_t behind = 0;
    for (const int64_t place : from) {
      while (behind < to.size() && to[behind] <= place) ++behind;
      for (size_t k = behind; k < to.size() && to[k] - place <= distances_; ++k) {
        const int64_t distance = to[k] - place;
        uint32_t node = pair;
        for (int64_t at = to[k] + distance; at < length_ && row_[at] >= 0 && grams_.nodes_[node].inner;
             at += distance) {
          node = grams_.child(node, row_[at]);
          if (node == Grams::kNone) break;
          if (grams_.nodes_[node].gram != Grams::kNone) ++counts_[grams_.nodes_[node].gram];
        }
        if (stop_.after(kStepNs)) return false;
      }
    }
    return true;
  }

  // The same for 64 places at once: mask k has the places of the k-th word on the way to `node`.
  bool count_masked(uint32_t node, size_t depth) {
    for (const Grams::Edge& edge : edges_of(node)) {
      set_mask(depth, edge.word);
      const uint32_t gram = grams_.nodes_[edge.to].gram;
      if (gram != Grams::kNone) {
        const auto others = static_cast<int64_t>(depth);  // words behind the first
        for (int64_t d = 1; d <= std::min(distances_, (length_ - 1) / others); ++d) {
          counts_[gram] += count_at_distance(d, depth + 1);
          if (stop_.after(kMaskNs * static_cast<double>(mask_words_ * (depth + 1)))) return false;
        }
      }
      if (grams_.nodes_[edge.to].inner && !count_masked(edge.to, depth + 1)) return false;
    }
    return true;
  }

  void set_mask(size_t k, int64_t word) {
    uint64_t* mask = masks_ + k * mask_words_;
    std::fill_n(mask, mask_words_, 0);
    for (const int64_t place : places_of(word)) mask[place / 64] |= uint64_t{1} << place % 64;
  }

  int64_t count_at_distance(int64_t distance, size_t words) const {
    const auto reach = static_cast<size_t>(length_ - distance * static_cast<int64_t>(words - 1));  // of first words
    int64_t found = 0;
    for (size_t i = 0; i < (reach + 63) / 64; ++i) {
      uint64_t all = masks_[i];
      for (size_t k = 1; k < words && all; ++k) {
        const auto shift = k * static_cast<size_t>(distance);
        const uint64_t* mask = masks_ + k * mask_words_ + i + shift / 64;
        const auto bits = static_cast<int>(shift % 64);
        all &= bits == 0 ? mask[0] : mask[0] >> bits | mask[1] << (64 - bits);
      }
      found += std::popcount(all);
    }
    return found;
  }

  const Grams& grams_;
  const int64_t* const row_;
  const int64_t length_, distances_;
  int64_t* const counts_;
  int64_t* const first_;  // places of word w: [first_[w], first_[w + 1])
  int64_t* const places_;
  uint64_t* const masks_;
  const size_t mask_words_;
  StopPoll& stop_;
};

size_t Grams::scratch(int64_t length) const {
  return columns_of_.size() + Occurrences::scratch(*this, length);
}

bool Grams::count(const int64_t* numbers, int64_t rows, int64_t length, int64_t* scratch, float* y) const {
  if (!fill_in_pieces(y, 0, static_cast<size_t>(rows * columns) * sizeof(float))) return false;
  const size_t grams = columns_of_.size();
  int64_t* const counts = scratch;
  const int64_t distances = std::min(skips, std::max<int64_t>(length, 1) - 1) + 1;
  const double walking_ns = (kPlaceNs + kStepNs) * static_cast<double>(distances) * static_cast<double>(length);
  const double finding_ns = kPlaceNs * static_cast<double>(pool_size_ + pairs_ + 2 * static_cast<size_t>(length));
  StopPoll stop;
  for (int64_t r = 0; r < rows; ++r, numbers += length, y += columns) {
    std::fill_n(counts, grams, 0);
    Occurrences occurrences(*this, numbers, length, distances, counts, scratch + grams, stop);
    const bool finds = 2 * finding_ns < walking_ns;
    if (finds && !occurrences.find()) return false;
    const bool done = finds && occurrences.pairs_ns() < walking_ns
                          ? occurrences.count()
                          : count_by_walking(numbers, length, distances, counts, stop);
    if (!done || stop.after(kPlaceNs * static_cast<double>(grams))) return false;
    for (size_t g = 0; g < grams; ++g) {
      if (counts[g] == 0) continue;
      const int64_t times = weighting == Weighting::kPresence ? 1 : counts[g];
      y[columns_of_[g]] += static_cast<float>(times) * weights_[g];
    }
  }
  return true;
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

  // The words' numbers, and what counting works in.
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

// Where words are strings.
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
