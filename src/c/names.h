#pragma once
// Identifiers of C for the names of a model.

#include <string>
#include <string_view>
#include <unordered_set>

namespace treadle::c {

// `name` with every character that no identifier may have replaced by '_', and something in front of a digit. Words of
// C get a '_' behind them. "x" if nothing is left.
std::string identifier(std::string_view name);

// Whether the code of single instructions may use the name for itself: one or two letters
// and digits, or one of a few words.
bool is_local_name(std::string_view name);

class Names {
 public:
  // An identifier for `name` that differs from all others so far, and is no local name.
  std::string add(std::string_view name);
  // Keeps `name` from being given to others.
  void reserve(std::string_view name) { taken_.emplace(name); }

 private:
  std::unordered_set<std::string> taken_;
};

// `text` within a comment: neither ends it nor begins another one; line ends and control characters become spaces.
std::string in_comment(std::string_view text);

}  // namespace treadle::c
