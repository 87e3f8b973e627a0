#include "misspelt.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <vector>

#include "base/spelling.h"

namespace cli {

namespace {

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  treadle::Speller speller(word);
  for (const std::string& candidate : candidates) speller.offer(candidate);
  return speller.best().empty() ? "" : fmt::format("; did you mean '{}'?", speller.best());
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (!command->get_group().empty()) names.push_back(command->get_name());
  }
  return names;
}

std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What an option takes, without the range that its help gives behind a colon.
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

}  // namespace

std::string unknown_command(const CLI::App& app, int argc, const char* const* argv) {
  if (argc < 2 || std::string_view(argv[1]).starts_with('-')) return {};
  const std::string word = argv[1];
  if (!app.get_subcommands([&](const CLI::App* command) { return command->get_name() == word; }).empty()) return {};
  const std::vector<std::string> commands = commands_of(app);
  const std::string hint = suggestion(word, commands);
  return fmt::format("there is no command '{}'{}", word,
                     hint.empty() ? fmt::format("; the commands are {}", fmt::join(commands, ", ")) : hint);
}

std::string unknown_words(const CLI::App& app) {
  std::vector<const CLI::App*> parsed{&app};
  for (const CLI::App* command : app.get_subcommands()) parsed.push_back(command);
  for (const CLI::App* command : parsed) {
    for (const std::string& word : command->remaining()) {
      const std::string name = word.substr(0, word.find('='));
      if (!name.starts_with('-')) return fmt::format("{} does not take '{}'", command->get_name(), word);
      return fmt::format("{} has no option '{}'{}", command->get_name(), name, suggestion(name, options_of(*command)));
    }
  }
  return {};
}

std::string wrong_value(const CLI::App& app, const CLI::ParseError& error) {
  const std::string_view what = error.what();
  for (const CLI::App* command : app.get_subcommands()) {
    for (const CLI::Option* option : command->get_options()) {
      const std::string name = option->get_name();
      if (what.starts_with(name + ": ")) {
        if (error.get_name() == "ValidationError") return fmt::format("{}: {}", command->get_name(), what);
        if (error.get_name() != "ArgumentMismatch") continue;
        return fmt::format("{}: {} takes {}, found nothing behind it", command->get_name(), name, type_of(*option));
      }
      const std::string found = fmt::format("Could not convert: {} = ", name);
      if (error.get_name() == "ConversionError" && what.starts_with(found)) {
        return fmt::format("{}: {} takes {}, found '{}'", command->get_name(), name, type_of(*option),
                           what.substr(found.size()));
      }
    }
  }
  return {};
}

}  // namespace cli
