#pragma once
// A pool of n-grams, and how often each of them occurs in rows of words.
//
// The pool is a trie over its words. A row is walked from each of its words on, and each node on the way at which an
// n-gram ends counts. With skips, the words of an n-gram have the same distance from each other. Single words are
// counted once, whatever the distance.

#include <unordered_map>
#include <vector>

#include "base/stop.h"
#include "ir/attribute.h"
#include "ops/ml/dictionary.h"

namespace treadle::text {

enum class Weighting : uint8_t { kCount, kPresence, kScaledCount };

class Grams {
 public:
  int64_t columns = 0;
  Weighting weighting = Weighting::kCount;
  int64_t shortest = 1, longest = 1, skips = 0;

  Status read(const ir::Attributes& attributes);
  ElementType word_type() const { return words_.type(); }
  // The size of count()'s working memory, in numbers.
  size_t scratch(int64_t length) const;
  // Counts the n-grams of rows of word numbers; `y` is [rows][columns]. False: the work is to stop.
  bool count(const int64_t* numbers, int64_t rows, int64_t length, int64_t* scratch, float* y) const;
  // Numbers of words in the pool; -1 for other words. False: the work is to stop.
  template <class Word>
  bool number(const Word* words, int64_t count, int64_t* numbers) const;

 private:
  friend class Occurrences;
  static constexpr uint32_t kNone = UINT32_MAX;
  struct Node {
    uint32_t gram = kNone;  // the n-gram that ends here
    bool inner = false;     // longer n-grams continue
    double steps = 0;       // total words, over two, of all n-grams that end here or below
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
  // The edges sorted by the node that they leave: [first_edge_[n], first_edge_[n + 1]).
  std::vector<Edge> edge_list_;
  std::vector<uint32_t> first_edge_;
  size_t pairs_ = 0;                 // nodes of depth two
  size_t depth_ = 0;                 // of the trie
  size_t pool_size_ = 0;             // words of the pool
  std::vector<int64_t> columns_of_;  // by n-gram
  std::vector<float> weights_;       // by n-gram in the pool's order, not by column
};

}  // namespace treadle::text
