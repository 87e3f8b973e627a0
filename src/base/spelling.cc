#include "base/spelling.h"

#include <algorithm>
#include <array>

namespace treadle {

namespace {

constexpr size_t kMaxLength = 64;
constexpr size_t kMaxCandidates = 10000;

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
}

// Counts insertions, deletions, substitutions and swaps of neighbours. Case is ignored.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::array<size_t, kMaxLength + 1> before{}, last{}, row{};
  for (size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const char x = lower(a[i - 1]), y = lower(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y)});
      if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = last;
    last = row;
  }
  return last[b.size()];
}

}  // namespace

void Speller::offer(std::string_view candidate) {
  if (word_.empty() || candidate.empty() || candidate == word_ || ++offered_ > kMaxCandidates) return;
  if (std::max(word_.size(), candidate.size()) > kMaxLength) return;
  const size_t longer = std::max(word_.size(), candidate.size());
  const size_t limit = std::max<size_t>(1, longer / 3);
  if (longer - std::min(word_.size(), candidate.size()) > limit) return;
  const size_t distance = edit_distance(word_, candidate);
  if (distance > limit || distance >= best_distance_ || distance >= word_.size()) return;
  best_ = candidate;
  best_distance_ = distance;
}

}  // namespace treadle
