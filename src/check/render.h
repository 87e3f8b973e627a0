#pragma once
// Reports as people and as programs read them.

#include <string>
#include <string_view>

#include "check/diagnostic.h"

namespace treadle {

struct RenderOptions {
  bool colour = false;
  // The model as it was written, when it is text: diagnostics then show their line with a caret under it.
  std::string_view source;
  std::string_view file;  // what to call the model; empty: as the report does
};

// One diagnostic after another, each a line and what belongs to it indented under it.
std::string render_text(const Report& report, const RenderOptions& options = {});
// One JSON object: file, ok, errors, warnings, problems; runs and refusal where a session was asked.
std::string render_json(const Report& report, const RenderOptions& options = {});

struct Position {
  size_t line = 1, column = 1;  // column in characters, not bytes
};
// Where the lines of a text begin.
class Lines {
 public:
  explicit Lines(std::string_view source);
  Position position_of(size_t offset) const;

 private:
  std::string_view source_;
  std::vector<size_t> begins_;
};

}  // namespace treadle
