#pragma once
// "did you mean": the candidate that a misspelt word was meant to be.

#include <span>
#include <string_view>
#include <vector>

namespace treadle {

// Collects candidates for one word and keeps the nearest. Costs time in proportion to the candidates' lengths; words
// and candidates of more than 64 bytes are left aside, and so are candidates beyond the first ten thousand.
class Speller {
 public:
  explicit Speller(std::string_view word) : word_(word) {}

  void offer(std::string_view candidate);
  // The nearest one; empty when none is near: at most a third of the word's letters may be wrong, and case is free.
  std::string_view best() const { return best_; }

 private:
  std::string_view word_;
  std::string_view best_;
  size_t best_distance_ = ~size_t{0};
  size_t offered_ = 0;
};

}  // namespace treadle
