#include "known_models.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <sstream>

namespace cli {

namespace {

// Written from the records of treadle.recipes; tests/python/test_known_models.py compares them.
constexpr KnownModel kKnown[] = {
#include "known_models.inc"
};

// "input[2,?]"
std::string sizes_text(const std::string& name, const treadle::Type& type) {
  std::vector<std::string> sizes;
  for (int64_t axis = 0; axis < type.rank(); ++axis) {
    sizes.push_back(type.dim(axis) < 0 ? "?" : std::to_string(type.dim(axis)));
  }
  return fmt::format("{}[{}]", name, fmt::join(sizes, ","));
}

// "input[?,?], sr[]"
std::string values_text(const treadle::Session& session, treadle_role role) {
  std::vector<std::string> values;
  for (size_t i = 0; i < session.count(role); ++i) {
    values.push_back(sizes_text(session.name(role, i), session.type(role, i)));
  }
  std::ranges::sort(values);
  return fmt::format("{}", fmt::join(values, ", "));
}

// Whether the texts are the same, with any size for a "?" of the first.
bool fits(std::string_view wanted, std::string_view found) {
  size_t at = 0;
  for (const char c : wanted) {
    if (at == found.size()) return false;
    if (c != '?') {
      if (found[at++] != c) return false;
    } else {
      while (at < found.size() && found[at] != ',' && found[at] != ']') ++at;
    }
  }
  return at == found.size();
}

}  // namespace

const KnownModel* known_model(const treadle::Session& session) {
  const std::string inputs = values_text(session, TREADLE_INPUT), outputs = values_text(session, TREADLE_OUTPUT);
  const auto* const found = std::ranges::find_if(
      kKnown, [&](const KnownModel& known) { return fits(known.inputs, inputs) && fits(known.outputs, outputs); });
  return found == std::end(kKnown) ? nullptr : found;
}

std::vector<std::string> stream_arguments(const KnownModel& known, const treadle::Session& session) {
  std::vector<std::string> arguments;
  std::istringstream words{std::string(known.command)};
  for (std::string word; words >> word;) {
    // "sr=16000" is for models with this input; an option has its value in the next word.
    const std::string name = word.substr(0, word.find('='));
    bool takes = true;
    if (name != word && !name.starts_with('-') && (arguments.empty() || !arguments.back().starts_with("--"))) {
      takes = false;
      for (size_t i = 0; i < session.count(TREADLE_INPUT); ++i) takes |= session.name(TREADLE_INPUT, i) == name;
    }
    if (takes) arguments.push_back(word);
  }
  return arguments;
}

}  // namespace cli
