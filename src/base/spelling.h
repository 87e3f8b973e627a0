#pragma once
// Finds the candidate closest to a misspelt word, for "did you mean".

#include <span>
#include <string_view>
#include <vector>

namespace treadle {

// Collects candidates for one word and keeps the nearest. Takes time in proportion to the candidates' lengths. Ignores
// words and candidates of more than 64 bytes, and candidates beyond the first ten thousand.
class Speller {
 public:
  explicit Speller(std::string_view word) : word_(word) {}

  void offer(std::string_view candidate);
  // The nearest candidate; empty if none is near. At most a third of the word's letters may differ; case is ignored.
  std::string_view best() const { return best_; }

 private:
  std::string_view word_;
  std::string_view best_;
  size_t best_distance_ = ~size_t{0};
  size_t offered_ = 0;
};

}  // namespace treadle
