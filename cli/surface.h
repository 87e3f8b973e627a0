#pragma once
// The commands, options and arguments of the tool, read from its parser: the source of --help, completion scripts and
// manual pages.

#include <string>
#include <vector>

#include "common.h"

namespace cli {

// An option, or (without names) a positional argument.
struct Argument {
  std::vector<std::string> names;  // "--tier", "-o"
  std::string placeholder;  // the placeholder for the value: "TIER"; for a positional argument its name; empty: no
                            // value
  std::vector<std::string> choices;  // the valid values, if there is a list of them
  enum class Kind { kOther, kFile, kFolder } kind = Kind::kOther;
  bool repeats = false, required = false;
  std::string text;
};

struct Command {
  std::string name, text, footer;
  std::vector<Argument> options, positionals;
};

// The tool itself, then its commands without the hidden ones.
std::vector<Command> commands_of(CLI::App& app);

// A script that completes commands, options and values in a shell: bash, zsh or fish.
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);

// A manual page in the macros of man(7). `date`: "2026-11-23".
std::string manual_page(const std::vector<Command>& commands, const Command& of, const std::string& date);

}  // namespace cli
