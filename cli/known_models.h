#pragma once
// Models that treadle.recipes, of the Python package, knows how to run.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "treadle/treadle.hpp"

namespace cli {

struct KnownModel {
  std::string_view recipe;   // its name in treadle.recipes
  std::string_view title;    // the model's own name
  std::string_view inputs;   // "input[?,?], sr[]": names and sizes, sorted; ?: any size
  std::string_view outputs;  // the same
  std::string_view command;  // arguments of treadle stream; empty: it cannot do what the recipe does
};

// The known model that has the inputs and outputs of this one, and their sizes; null: none.
const KnownModel* known_model(const treadle::Session& session);

// The arguments of treadle stream for this session, which may lack some of the model's inputs.
std::vector<std::string> stream_arguments(const KnownModel& known, const treadle::Session& session);

}  // namespace cli
