#pragma once
// Unknown words on a command line, and the commands or options closest to them.

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
}  // namespace CLI

namespace cli {

// An error if the first word is neither a command nor an option; else empty.
std::string unknown_command(const CLI::App& app, int argc, const char* const* argv);
// An error with the words of a parsed command line that its command does not take; else empty.
std::string unknown_words(const CLI::App& app);

}  // namespace cli
