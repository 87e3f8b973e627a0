#pragma once
// Reports as text and as JSON.

#include <string>
#include <string_view>

#include "check/diagnostic.h"

namespace treadle {

struct RenderOptions {
  bool colour = false;
  // The text of a model that is text: diagnostics then show their line with a caret under it.
  std::string_view source;
  std::string_view file;  // name of the model; empty: the report's
};

// One diagnostic after the other: a line, and details indented under it.
std::string render_text(const Report& report, const RenderOptions& options = {});
// One JSON object: file, ok, errors, warnings, problems; also runs and refusal if a session was tried.
std::string render_json(const Report& report, const RenderOptions& options = {});

struct Position {
  size_t line = 1, column = 1;  // column in characters, not bytes
};
// Beginnings of the lines of a text.
class Lines {
 public:
  explicit Lines(std::string_view source);
  Position position_of(size_t offset) const;

 private:
  std::string_view source_;
  std::vector<size_t> begins_;
};

}  // namespace treadle
