// The text and the JSON of a search.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "base/harmless.h"
#include "base/json.h"
#include "report/findings.h"
#include "report/statistics_text.h"

namespace treadle::report {

namespace {

constexpr size_t kMostPlaces = 8;  // in the text

std::string index_text(const std::vector<int64_t>& index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

// Processors make NaN of either sign, which says nothing.
std::string number_text(double number) {
  return std::isnan(number) ? "nan" : fmt::format("{:.6g}", number);
}

// "/Scan_1 body, iteration 2: "
std::string around(const FoundPlace& place) {
  std::string text;
  for (const auto& [loop, iteration] : place.iterations)
    text += fmt::format("{} body, iteration {}: ", loop, iteration);
  return text;
}

std::string title(const FoundPlace& place) {
  switch (place.by) {
    case FoundPlace::By::kInput:
      return fmt::format("input {}", place.result.name);
    case FoundPlace::By::kConstant:
      if (!place.op.empty()) return fmt::format("{} {}, before the run: of constants", place.op, place.node);
      return place.result.name.empty() ? "a constant" : fmt::format("initializer or constant {}", place.result.name);
    case FoundPlace::By::kNode:
      break;
  }
  return fmt::format("{}{} {}", around(place), place.op, place.node);
}

std::string line(const FoundValue& value) {
  return fmt::format("{}  {}  {}", value.label.empty() ? "(unnamed)" : value.label, value.type,
                     to_text(value.statistics));
}

std::string operand_line(const FoundValue& value) {
  std::string text = line(value);
  if (value.number && value.statistics.count > 1) text += fmt::format(", {} there", number_text(*value.number));
  if (value.made_by.empty()) return text;
  text += ", made by " + value.made_by;
  if (value.iteration >= 0) text += fmt::format(" in iteration {}", value.iteration);
  return text;
}

std::string text_of(const FoundStep& step) {
  if (step.is_row) return fmt::format("rows of {} {}", step.op, step.node);
  std::string text = fmt::format("{} {}", step.op, step.node);
  if (step.first < 0) return text;
  if (step.last > step.first) return text + fmt::format(", iterations {} to {}", step.first, step.last);
  return text + fmt::format(", iteration {}", step.first);
}

void add_place(std::string& out, const Findings& findings, size_t index) {
  const FoundPlace& place = findings.places[index];
  out += fmt::format("made at     {}\n", title(place));
  for (const FoundValue& input : place.inputs) out += fmt::format("            input   {}\n", operand_line(input));
  out += fmt::format("            {}  {}", place.op.empty() ? "value " : "output", line(place.result));
  if (place.has_element && !place.element.empty()) {
    out += fmt::format(", the first at {}: {}", index_text(place.element), number_text(place.number));
  }
  out += "\n";
  if (place.times > 1)
    out += fmt::format("            {} times in this run; this is the {}\n", place.times,
                       index < findings.reached ? "one that reached the output" : "first");
  for (const FoundOutput& output : findings.outputs) {
    if (output.place != index) continue;
    std::string path;
    for (size_t i = 0; i < output.path.size(); ++i) {
      if (output.left_out > 0 && i == Cause::kFirstSteps) path += fmt::format("... ({} more) -> ", output.left_out);
      path += text_of(output.path[i]) + "\n            -> ";
    }
    out += fmt::format("went on     {}{}\n", path, output.name);
  }
}

std::string text_of(const SavedNode& saved) {
  if (saved.folder.empty()) return fmt::format("not saved   {}\n", saved.problem);
  return fmt::format("saved       {} (treadle test {}){}{}\n", saved.folder, saved.folder,
                     saved.problem.empty() ? "" : ": ", saved.problem);
}

std::string count_text(const Findings& findings, const FoundOutput& output) {
  const kernels::Statistics& s = output.statistics;
  const std::string first =
      output.has_element && !output.element.empty() ? ", the first at " + index_text(output.element) : "";
  if (findings.sought == "nan") return fmt::format("{} of {} elements are nan{}", s.nan, s.count, first);
  if (findings.sought == "inf") return fmt::format("{} of {} elements are infinite{}", s.infinite, s.count, first);
  return fmt::format("{} in {} elements{}: {}", findings.sought, s.count, first, to_text(s));
}

// The names of values as people may see them; those of nodes are so from the import on.
void make_harmless(FoundValue& value) {
  value.name = harmless(value.name);
  value.label = harmless(value.label);
  value.type = harmless(value.type);
}
Findings with_harmless_names(Findings findings) {
  for (FoundPlace& place : findings.places) {
    make_harmless(place.result);
    for (FoundValue& input : place.inputs) make_harmless(input);
  }
  for (FoundOutput& output : findings.outputs) output.name = harmless(output.name);
  return findings;
}

std::string json_of(const std::vector<int64_t>& index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

std::string json_of(const FoundValue& value) {
  JsonObject json;
  json.text("name", value.name).text("type", value.type).raw("statistics", to_json(value.statistics));
  if (value.number) json.raw("element", number_json(*value.number));
  if (!value.made_by.empty()) json.text("made_by", value.made_by);
  if (value.iteration >= 0) json.integer("made_in_iteration", value.iteration);
  return json.str();
}

std::string json_of(const FoundPlace& place) {
  constexpr const char* kBy[] = {"node", "input", "constant"};
  std::vector<std::string> loops, inputs;
  for (const auto& [loop, iteration] : place.iterations) {
    loops.push_back(JsonObject().text("loop", loop).integer("iteration", iteration).str());
  }
  for (const FoundValue& input : place.inputs) inputs.push_back(json_of(input));
  JsonObject json;
  json.text("by", kBy[static_cast<size_t>(place.by)]).text("node", place.node).text("op", place.op);
  json.raw("iterations", json_array(loops)).raw("inputs", json_array(inputs)).raw("result", json_of(place.result));
  if (place.has_element) json.raw("element", json_of(place.element)).raw("number", number_json(place.number));
  return json.integer("times", place.times).str();
}

std::string json_of(const FoundOutput& output) {
  JsonObject json;
  json.text("name", output.name).raw("statistics", to_json(output.statistics));
  if (output.has_element) json.raw("element", json_of(output.element));
  if (output.place == SIZE_MAX) return json.str();
  std::vector<std::string> path;
  for (const FoundStep& step : output.path) {
    JsonObject one;
    one.text("node", step.node).text("op", step.op).text("loop", step.loop).boolean("row", step.is_row);
    path.push_back(one.integer("first", step.first).integer("last", step.last).integer("times", step.times).str());
  }
  json.integer("place", static_cast<int64_t>(output.place)).raw("path", json_array(path));
  return json.integer("left_out", static_cast<int64_t>(output.left_out)).str();
}

}  // namespace

std::string to_text(const Findings& found) {
  const Findings findings = with_harmless_names(found);
  std::string out;
  for (const FoundOutput& output : findings.outputs) {
    if (output.place != SIZE_MAX) out += fmt::format("{:<11} {}\n", output.name, count_text(findings, output));
  }
  if (!findings.any()) {
    return fmt::format("no {} in {} values, which {} instructions wrote\n", findings.sought, findings.values,
                       findings.instructions);
  }
  for (size_t i = 0; i < findings.reached; ++i) add_place(out, findings, i);
  if (findings.reached == 0) {
    out += findings.is_complete ? fmt::format("{} is in values inside, but in no output\n", findings.sought)
                                : fmt::format("{} was in values before the run failed\n", findings.sought);
    add_place(out, findings, 0);
  }
  if (findings.saved) out += text_of(*findings.saved);
  const size_t shown = std::max<size_t>(findings.reached, 1);
  if (shown == findings.places.size()) return out;
  out +=
      fmt::format("elsewhere   made at {} more places, and reached no output first:\n", findings.places.size() - shown);
  for (size_t i = shown; i < findings.places.size() && i < shown + kMostPlaces; ++i) {
    const FoundPlace& place = findings.places[i];
    out +=
        fmt::format("            {}{}\n", title(place), place.times > 1 ? fmt::format(", {} times", place.times) : "");
  }
  if (findings.places.size() > shown + kMostPlaces) out += "            ... (--json has all)\n";
  return out;
}

std::string to_json(const Findings& findings) {
  std::vector<std::string> places, outputs;
  for (const FoundPlace& place : findings.places) places.push_back(json_of(place));
  for (const FoundOutput& output : findings.outputs) outputs.push_back(json_of(output));
  JsonObject json;
  json.text("sought", findings.sought).raw("outputs", json_array(outputs)).raw("places", json_array(places));
  json.integer("reached", static_cast<int64_t>(findings.reached)).integer("values", findings.values);
  if (findings.saved) {
    const SavedNode& saved = *findings.saved;
    json.raw("saved", JsonObject().text("folder", saved.folder).text("problem", saved.problem).str());
  }
  return json.integer("instructions", findings.instructions).boolean("complete", findings.is_complete).str();
}

}  // namespace treadle::report
