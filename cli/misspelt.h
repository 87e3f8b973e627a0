#pragma once
// Words of a command line that name no command or option, and what they are likely to mean.

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}  // namespace CLI

namespace cli {

// Says that the first word names no command; empty where it names one, or is an option.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv);
// Says which words of a parsed command line its command does not take; empty where it takes all.
std::string unknown_words(const CLI::App& app);

}  // namespace cli
