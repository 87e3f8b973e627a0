#pragma once
// Words on a command line that no command takes: what is wrong with them, and the commands or options closest to them.

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
class ParseError;
}  // namespace CLI

namespace cli {

// An error if the first word is neither a command nor an option; else empty.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv);
// An error with the words of a parsed command line that its command does not take; else empty.
std::string unknown_words(const CLI::App& app);
// An error with an option that has no value, or one that the option does not take; else empty.
std::string wrong_value(const CLI::App& app, const CLI::ParseError& error);

}  // namespace cli
