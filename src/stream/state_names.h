#pragma once
// What the names of an input and an output say about whether they are one state before and after a run.

#include <string>
#include <string_view>
#include <vector>

namespace treadle::stream {

// A name in words: "stateN" is "state" and "n", "past_key_values.0.key" is "0" and "key".
struct StateName {
  std::string stem;                // the words that name the state, with spaces between
  std::vector<std::string> roles;  // the words left out, which say "before" or "after"

  // With `numbers`, a number at the end counts as a word for before or after: "h0", "hn".
  static StateName of(std::string_view name, bool numbers);
};

// Whether all words of one stem stand in the other, in this order, and what the longer one has more is one word at its
// beginning or end ("att cache", "r att cache").
bool has_one_word_more(std::string_view stem, std::string_view other);

}  // namespace treadle::stream
