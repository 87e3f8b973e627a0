#pragma once
// The number of frames of each timed value once n samples have come: an expression of n made of sums, products and
// quotients that are rounded down.

#include <cstdint>
#include <numeric>
#include <vector>

#include "base/status.h"

namespace treadle::stream {

// The positions where blocks begin and end: after first + k * hop samples.
struct Lattice {
  int64_t hop = 0;  // 0: unknown yet; frames count as 0
  int64_t first = 0;
};

// Counts frames in two ways: while the signal goes on, and in a run over a signal of n samples, which sees its end.
class FrameCounts {
 public:
  explicit FrameCounts(Lattice lattice = {});

  static constexpr int kSamples = 0;
  // floor((of + add) * mul / div); in a whole run, `whole_add` replaces `add`.
  int scaled(int of, int64_t add, int64_t whole_add, int64_t mul = 1, int64_t div = 1);
  // The least of several counts that are equal in a whole run.
  int least(const std::vector<int>& of);
  // The first block must have at least `frames` frames; otherwise at least one.
  void need(int count, int64_t frames) { needs_.push_back({count, frames}); }
  bool same_rate(int a, int b) const { return terms_[index(a)].rate == terms_[index(b)].rate; }

  // Frames of the first block, and of every hop behind it. The lattice must be known.
  int64_t at_first(int count) const { return terms_[index(count)].at_first; }
  int64_t per_hop(int count) const { return terms_[index(count)].per_hop; }
  // Whether the first block gives as many frames as every other block.
  bool first_is_like_others() const;
  // Samples by which frames come later than in a whole run.
  int64_t delay(int count) const;

  // The shortest hop for which every value has a whole number of frames, and the shortest first block in which every
  // value has at least one frame, or the needed number. Error kLimit if these are unreasonably large.
  Result<Lattice> solve() const;

 private:
  struct Rate {  // frames per sample, in lowest terms
    int64_t frames = 1, samples = 1;
    bool operator==(const Rate&) const = default;
  };
  struct Term {
    std::vector<int> of;
    int64_t add = 0, whole_add = 0, mul = 1, div = 1;
    Rate rate;
    int64_t at_first = 0, per_hop = 0;
  };
  static size_t index(int count) { return static_cast<size_t>(count); }
  int add_term(Term term);
  std::vector<int64_t> count(int64_t samples, bool whole) const;
  Result<int64_t> shortest_hop() const;

  Lattice lattice_;
  std::vector<Term> terms_;
  std::vector<std::pair<int, int64_t>> needs_;
};

}  // namespace treadle::stream
