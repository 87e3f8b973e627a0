#include "stream/state_names.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace treadle::stream {

namespace {

constexpr std::array<std::string_view, 30> kRoleWords = {
    "in",     "out",     "input", "output", "inputs",  "outputs", "next",  "new", "prev",    "previous",
    "past",   "present", "old",   "init",   "initial", "final",   "last",  "cur", "current", "updated",
    "before", "after",   "n",     "t",      "tm1",     "y",       "start", "end", "result",  "begin"};

bool is_role_word(std::string_view token) {
  return std::find(kRoleWords.begin(), kRoleWords.end(), token) != kRoleWords.end();
}

bool is_number(std::string_view token) {
  return std::all_of(token.begin(), token.end(), [](unsigned char c) { return std::isdigit(c); });
}

// Splits a name into words: "stateN" -> state, n; "h0" -> h, 0; "hn" -> h, n (a letter and its index);
// "past_key_values.0.key" at each separator.
std::vector<std::string> tokens_of(std::string_view name) {
  std::vector<std::string> tokens;
  bool open = false;
  for (size_t i = 0; i < name.size(); ++i) {
    const auto c = static_cast<unsigned char>(name[i]);
    if (!std::isalnum(c)) {
      open = false;
      continue;
    }
    const auto before = static_cast<unsigned char>(i > 0 ? name[i - 1] : 0);
    const bool boundary = (std::isupper(c) && std::islower(before)) || (!std::isdigit(c) != !std::isdigit(before));
    if (!open || boundary) tokens.emplace_back();
    tokens.back().push_back(static_cast<char>(std::tolower(c)));
    open = true;
  }
  if (!tokens.empty() && tokens.back().size() == 2 && (tokens.back()[1] == 'n' || tokens.back()[1] == 't') &&
      !is_role_word(tokens.back())) {
    const std::string last = tokens.back();
    tokens.back() = last.substr(0, 1);
    tokens.push_back(last.substr(1));
  }
  return tokens;
}

}  // namespace

StateName StateName::of(std::string_view name, bool numbers) {
  constexpr std::string_view kCache = "past_key_values";  // its counterpart is "present"
  const bool is_cache = name.substr(0, kCache.size()) == kCache;
  std::vector<std::string> tokens = tokens_of(is_cache ? name.substr(kCache.size()) : name);
  StateName made;
  if (is_cache) made.roles.emplace_back(kCache);
  if (numbers && tokens.size() > 1 && is_number(tokens.back())) {
    made.roles.push_back(std::move(tokens.back()));
    tokens.pop_back();
  }
  for (std::string& token : tokens) {
    if (is_role_word(token)) {
      made.roles.push_back(std::move(token));
      continue;
    }
    if (!made.stem.empty()) made.stem += ' ';
    made.stem += token;
  }
  return made.stem.empty() ? StateName{std::string(name), {}} : made;
}

bool has_one_word_more(std::string_view stem, std::string_view other) {
  const std::string_view less = stem.size() < other.size() ? stem : other,
                         more = stem.size() < other.size() ? other : stem;
  if (less.size() == more.size()) return false;
  const std::string_view before = more.substr(0, more.size() - less.size()), after = more.substr(less.size());
  const bool at_end = more.starts_with(less) && after[0] == ' ' && after.rfind(' ') == 0;
  const bool at_begin = more.ends_with(less) && before.back() == ' ' && before.find(' ') + 1 == before.size();
  return at_end || at_begin;
}

}  // namespace treadle::stream
