// treadle options: the table of all that changes how treadle works.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/knobs.h"
#include "common.h"
#include "json.h"

namespace cli {

namespace {

using treadle::Knob;

struct Group {
  Knob::Kind kind;
  std::string_view title, name;
};

constexpr Group kGroups[] = {
    {Knob::Kind::kSession, "Options of a session", "session"},
    {Knob::Kind::kRun, "Options of a run", "run"},
    {Knob::Kind::kVariable, "Environment variables", "variable"},
};

void print(const Knob& knob) {
  const std::string page = knob.page.empty() ? "" : fmt::format(" (docs/{})", knob.page);
  fmt::print("  {}  {}{}\n", bold(knob.name), knob.values,
             knob.otherwise.empty() ? "" : fmt::format("; {} unless given", knob.otherwise));
  fmt::print("      {}{}\n      {}\n", knob.meaning, page, dim(knob.where));
}

std::string json_of(const Group& group, const Knob& knob) {
  JsonObject json;
  json.text("kind", group.name).text("name", knob.name).text("values", knob.values);
  json.text("default", knob.otherwise).text("meaning", knob.meaning).text("where", knob.where);
  return json.text("page", knob.page).str();
}

struct Options {
  Common common;
  std::string name;

  int operator()() const {
    std::vector<std::string> items;
    bool is_found = false;
    for (const Group& group : kGroups) {
      if (name.empty() && !common.json) fmt::print("{}:\n", group.title);
      for (const Knob& knob : treadle::kKnobs) {
        if (knob.kind != group.kind || (!name.empty() && knob.name != name)) continue;
        is_found = true;
        if (common.json) {
          items.push_back(json_of(group, knob));
        } else {
          print(knob);
        }
      }
    }
    if (!is_found)
      throw InputError(fmt::format("there is no option or variable '{}': treadle options lists all", name));
    if (common.json) fmt::print("{}\n", json_array(items));
    return kOk;
  }
};

}  // namespace

void add_options(CLI::App& app, int& status) {
  CLI::App& command = *app.add_subcommand(
      "options", "List the options of sessions and runs, and the environment variables, or say all about one");
  const auto options = std::make_shared<Options>();
  command.add_option("name", options->name, "Only this one")->type_name("NAME");
  add_json(command, options->common);
  command.callback([options, &status] { status = (*options)(); });
}

}  // namespace cli
