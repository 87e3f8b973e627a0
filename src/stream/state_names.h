#pragma once
// Whether the names of an input and an output suggest that they are one state before and after a run.

#include <string>
#include <string_view>
#include <vector>

namespace treadle::stream {

// The words of a name without words for before and after: "stateN" is "state" and "n", "past_key_values.0.key" is "0"
// and "key".
struct StateName {
  std::string stem;                // the words that name the state, separated by spaces
  std::vector<std::string> roles;  // the removed words, which mean "before" or "after"

  // With `numbers`, a number at the end counts as a word for before or after: "h0", "hn".
  static StateName of(std::string_view name, bool numbers);
};

// Whether one stem consists of all words of the other in order, plus one word at its beginning or end ("att cache", "r
// att cache").
bool has_one_word_more(std::string_view stem, std::string_view other);

}  // namespace treadle::stream
