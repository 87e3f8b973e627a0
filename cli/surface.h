#pragma once
// What the tool takes, read off its options: one home of the facts for --help, completion scripts and manual pages.

#include <string>
#include <vector>

#include "common.h"

namespace cli {

// An option, or (without names) a positional argument.
struct Argument {
  std::vector<std::string> names;    // "--tier", "-o"
  std::string placeholder;           // what stands for the value: "TIER", of a positional its name; empty: no value
  std::vector<std::string> choices;  // of a value that is one of a few
  enum class Kind { kOther, kFile, kFolder } kind = Kind::kOther;
  bool repeats = false, required = false;
  std::string text;
};

struct Command {
  std::string name, text, footer;
  std::vector<Argument> options, positionals;
};

// The tool itself, which comes first, and its commands but those that are hidden.
std::vector<Command> commands_of(CLI::App& app);

// A script that makes a shell complete what the tool takes: "bash", "zsh" or "fish".
std::string bash_completion(const std::vector<Command>& commands);
std::string zsh_completion(const std::vector<Command>& commands);
std::string fish_completion(const std::vector<Command>& commands);

// A manual page in the macros of man(7). `date`: "2026-11-23".
std::string manual_page(const std::vector<Command>& commands, const Command& of, const std::string& date);

}  // namespace cli
