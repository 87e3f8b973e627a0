// With many distances, rows are not walked once per distance (Occurrences). Pairs of words within reach of each other
// are counted from the lists of positions of words. Longer n-grams are counted by walking on from these pairs or, if
// there are many, for 64 positions at once.
#include "ops/text/ngrams.h"

#include <algorithm>
#include <bit>
#include <string>

#include "op/pieces.h"
#include "ops/costs.h"

namespace treadle::text {

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
  // A node has a larger number than its parent.
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
    return error(Code::kInvalidModel, "attribute weights has {} entries, expected one for each of {} n-grams",
                 weights.size(), grams);
  }
  weights_.assign(weights.begin(), weights.end());
  weights_.resize(grams, 1.0f);
  if (mode == "TF") std::fill(weights_.begin(), weights_.end(), 1.0f);
  return {};
}

// `pool`: its words as numbers. The n-grams of n words begin at ngram_counts[n - 1].
Status Grams::read_pool(const ir::Attributes& attributes, const std::vector<int64_t>& pool) {
  const auto begins = attributes.get_ints("ngram_counts");
  size_t gram = 0;
  for (size_t n = 1; n <= begins.size(); ++n) {
    const int64_t begin = begins[n - 1];
    const int64_t end = n < begins.size() ? begins[n] : static_cast<int64_t>(pool.size());
    const auto length = static_cast<int64_t>(n);
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) || (end - begin) % length != 0) {
      return error(Code::kInvalidModel,
                   "attribute ngram_counts gives words {} to {} to {}-grams, expected whole ones of {} words", begin,
                   end, n, pool.size());
    }
    for (int64_t at = begin; at < end; at += length, ++gram) {
      if (gram >= columns_of_.size()) break;
      if (length < shortest || length > longest) continue;
      add(pool.data() + at, length, static_cast<uint32_t>(gram));
    }
  }
  if (gram == columns_of_.size()) return list_edges(), Status();
  return error(Code::kInvalidModel, "attribute ngram_indexes has {} entries, expected one for each of {} n-grams",
               columns_of_.size(), gram);
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
    return error(Code::kInvalidModel,
                 "attributes min_gram_length, max_gram_length and max_skip_count are {}, {} and {}, expected at "
                 "least 1, at least as many and at least 0",
                 shortest, longest, skips);
  }
  if (columns_of.empty())
    return error(Code::kInvalidModel, "attribute ngram_indexes is empty, expected an entry for each n-gram");
  for (const int64_t column : columns_of) {
    if (column < 0 || column >= INT32_MAX)
      return error(Code::kInvalidModel, "attribute ngram_indexes holds {}, expected at least 0", column);
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
  return in_pieces(count, costs::kGramFindNs, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<Word, String>) {
        numbers[i] = words_.find(std::string_view(words[i]));
      } else {
        numbers[i] = words_.find(static_cast<int64_t>(words[i]));
      }
    }
  });
}

template bool Grams::number(const int32_t*, int64_t, int64_t*) const;
template bool Grams::number(const int64_t*, int64_t, int64_t*) const;
template bool Grams::number(const String*, int64_t, int64_t*) const;

// Counts the n-grams of at least `least` words that begin at `start`.
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
    if (!in_pieces(length, costs::kGramPlaceNs + 2 * costs::kGramStepNs, stop, walk_from)) return false;
  }
  return true;
}

// The positions of the pool's words in one row, and counts derived from them.
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

  // For positions and masks.
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
    if (!in_pieces(length_, costs::kGramPlaceNs, stop_, count)) return false;
    for (size_t w = 0; w < grams_.pool_size_; ++w) first_[w + 1] += first_[w];
    if (!in_pieces(length_, costs::kGramPlaceNs, stop_, place)) return false;
    std::copy_backward(first_, first_ + grams_.pool_size_, first_ + grams_.pool_size_ + 1);
    first_[0] = 0;
    return true;
  }

  // Estimated time to count pairs.
  double pairs_ns() const {
    double places = 0;
    for_each_pair([&](int64_t a, int64_t b, uint32_t) {
      places += static_cast<double>(1 + places_of(a).size() + places_of(b).size());
      return true;
    });
    return costs::kGramPlaceNs * places;
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
      const double many = static_cast<double>(std::min(distances_, (length_ - 1) / 2)) * costs::kGramMaskNs *
                          static_cast<double>(mask_words_) * found.steps;
      if (static_cast<double>(pairs) * costs::kGramStepNs < many) return walk_on(a, b, node);
      set_mask(0, a);
      set_mask(1, b);
      return count_masked(node, 2);
    });
  }

 private:
  static size_t mask_words(int64_t length) { return static_cast<size_t>(length) / 64 + 2; }

  std::span<const Grams::Edge> edges_of(uint32_t node) const {
    return std::span(grams_.edge_list_)
        .subspan(grams_.first_edge_[node], grams_.first_edge_[node + 1] - grams_.first_edge_[node]);
  }
  std::span<const int64_t> places_of(int64_t word) const {
    return {places_ + first_[word], places_ + first_[word + 1]};
  }

  // Calls fn(first word, second word, node) until it returns false.
  template <class Fn>
  bool for_each_pair(Fn&& fn) const {
    for (const Grams::Edge& a : edges_of(0)) {
      for (const Grams::Edge& b : edges_of(a.to)) {
        if (!fn(a.word, b.word, b.to)) return false;
      }
    }
    return true;
  }

  // Counts how often b follows a within reach.
  bool count_pair(int64_t a, int64_t b, int64_t& pairs) {
    const auto from = places_of(a), to = places_of(b);
    size_t behind = 0, beyond = 0;  // in `to`: the first position behind the one in `from`, and the first one out of
                                    // its reach
    return in_pieces(static_cast<int64_t>(from.size()), 2 * costs::kGramPlaceNs, stop_,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t i = begin; i < end; ++i) {
                         const int64_t place = from[static_cast<size_t>(i)];
                         while (behind < to.size() && to[behind] <= place) ++behind;
                         while (beyond < to.size() && to[beyond] - place <= distances_) ++beyond;
                         pairs += static_cast<int64_t>(std::max(beyond, behind) - behind);
                       }
                     });
  }

  // Counts longer n-grams from each pair of first words.
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
        if (stop_.after(costs::kGramStepNs)) return false;
      }
    }
    return true;
  }

  // The same for 64 positions at once: mask k has the positions of the k-th word on the path to `node`.
  bool count_masked(uint32_t node, size_t depth) {
    for (const Grams::Edge& edge : edges_of(node)) {
      set_mask(depth, edge.word);
      const uint32_t gram = grams_.nodes_[edge.to].gram;
      if (gram != Grams::kNone) {
        const auto others = static_cast<int64_t>(depth);  // words behind the first one
        for (int64_t d = 1; d <= std::min(distances_, (length_ - 1) / others); ++d) {
          counts_[gram] += count_at_distance(d, depth + 1);
          if (stop_.after(costs::kGramMaskNs * static_cast<double>(mask_words_ * (depth + 1)))) return false;
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
  int64_t* const first_;  // positions of word w: [first_[w], first_[w + 1])
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
  const double walking_ns =
      (costs::kGramPlaceNs + costs::kGramStepNs) * static_cast<double>(distances) * static_cast<double>(length);
  const double finding_ns =
      costs::kGramPlaceNs * static_cast<double>(pool_size_ + pairs_ + 2 * static_cast<size_t>(length));
  StopPoll stop;
  for (int64_t r = 0; r < rows; ++r, numbers += length, y += columns) {
    std::fill_n(counts, grams, 0);
    Occurrences occurrences(*this, numbers, length, distances, counts, scratch + grams, stop);
    const bool finds = 2 * finding_ns < walking_ns;
    if (finds && !occurrences.find()) return false;
    const bool done = finds && occurrences.pairs_ns() < walking_ns
                          ? occurrences.count()
                          : count_by_walking(numbers, length, distances, counts, stop);
    if (!done || stop.after(costs::kGramPlaceNs * static_cast<double>(grams))) return false;
    for (size_t g = 0; g < grams; ++g) {
      if (counts[g] == 0) continue;
      const int64_t times = weighting == Weighting::kPresence ? 1 : counts[g];
      y[columns_of_[g]] += static_cast<float>(times) * weights_[g];
    }
  }
  return true;
}

}  // namespace treadle::text
