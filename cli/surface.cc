#include "surface.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

namespace cli {

namespace {

// The valid values of an option. A check by one_of() has them in its name; other checks have none.
std::vector<std::string> choices_of(CLI::Option& option) {
  std::vector<std::string> choices;
  try {
    for (int i = 0;; ++i) {
      std::istringstream list(option.get_validator(i)->get_name());
      for (std::string choice; list >> choice;) choices.push_back(choice);
    }
  } catch (const CLI::OptionNotFound&) {
    return choices;  // behind the last check
  }
}

// The kind of an argument, by its placeholder: a file, a model (or a value, which may be in a file), or a folder.
Argument::Kind kind_of(const std::string& type) {
  const auto has = [&](const char* word) { return type.find(word) != std::string::npos; };
  if (has("FOLDER")) return Argument::Kind::kFolder;
  return has("FILE") || has("MODEL") || has("VALUE") ? Argument::Kind::kFile : Argument::Kind::kOther;
}

Argument argument_of(CLI::Option& option) {
  Argument argument;
  for (const std::string& name : option.get_snames()) argument.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) argument.names.push_back("--" + name);
  const std::string type = option.get_type_name();
  const bool takes_value = option.get_items_expected_max() > 0;
  if (option.get_positional()) {
    argument.placeholder = option.get_name(true);
  } else if (takes_value) {
    argument.placeholder = type.substr(0, type.find(':'));
  }
  if (takes_value) argument.kind = kind_of(type);
  argument.choices = choices_of(option);
  argument.repeats = takes_value && option.get_items_expected_max() > 1;
  argument.required = option.get_required();
  argument.text = option.get_description();
  return argument;
}

Command command_of(CLI::App& app, const std::string& name) {
  Command command{name, app.get_description(), app.get_footer(), {}, {}};
  for (CLI::Option* option : app.get_options({})) {
    (option->get_positional() ? command.positionals : command.options).push_back(argument_of(*option));
  }
  return command;
}

}  // namespace

std::vector<Command> commands_of(CLI::App& app) {
  std::vector<Command> commands{command_of(app, "")};
  for (CLI::App* command : app.get_subcommands({})) {
    if (!command->get_group().empty()) commands.push_back(command_of(*command, command->get_name()));
  }
  return commands;
}

}  // namespace cli
