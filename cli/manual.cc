// Manual pages, and the hidden commands that write them and the completion scripts.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/knobs.h"
#include "surface.h"

namespace cli {

namespace {

// Wraps a text to 78 characters, so that troff takes no line for a request.
std::string prose(const std::string& text) {
  std::istringstream words(text);
  std::string lines, line;
  const auto end_line = [&] {
    if (line.empty()) return;
    lines += line.front() == '.' || line.front() == '\'' ? "\\&" + line + "\n" : line + "\n";
    line.clear();
  };
  for (std::string word; words >> word;) {
    std::string escaped;
    for (const char c : word) escaped += c == '\\' ? "\\e" : c == '-' ? "\\-" : std::string(1, c);
    if (line.size() + escaped.size() > 77) end_line();
    line += (line.empty() ? "" : " ") + escaped;
  }
  end_line();
  return lines;
}

// The text on one line.
std::string word(const std::string& text) {
  std::string line = prose(text);
  std::erase(line, '\n');
  return line;
}

std::string page_name(const Command& command) {
  return command.name.empty() ? "treadle" : "treadle-" + command.name;
}

// The name and summary of a command: the summary begins with a small letter, unless its first word is a name ("ONNX").
std::string summary(const Command& command) {
  const size_t colon = command.name.empty() ? command.text.find(": ") : std::string::npos;
  return colon == std::string::npos ? command.text : command.text.substr(colon + 2);
}

std::string synopsis(const Command& command) {
  std::string text = fmt::format(".B treadle{}\n[\\fIOPTIONS\\fR]", command.name.empty() ? "" : " " + command.name);
  if (command.name.empty()) return text + "\n\\fICOMMAND\\fR ...\n";
  for (const Argument& argument : command.positionals) {
    const std::string form = fmt::format("\\fI{}\\fR{}", word(argument.placeholder), argument.repeats ? " ..." : "");
    text += "\n" + (argument.required ? form : "[" + form + "]");
  }
  return text + "\n";
}

std::string described(const Argument& argument) {
  std::string head;
  for (const std::string& name : argument.names) {
    head += fmt::format("{}\\fB{}\\fR", head.empty() ? "" : ", ", word(name));
  }
  if (!argument.placeholder.empty()) {
    head += fmt::format("{}\\fI{}\\fR", head.empty() ? "" : " ", word(argument.placeholder));
  }
  return fmt::format(".TP\n{}\n{}", head, prose(argument.text.empty() ? "." : argument.text));
}

std::string section(const char* title, const std::vector<Argument>& arguments) {
  std::string text;
  for (const Argument& argument : arguments) text += described(argument);
  return text.empty() ? text : fmt::format(".SH {}\n{}", title, text);
}

// The date of SOURCE_DATE_EPOCH, which makes repeated builds identical; else today.
std::string date_of_pages() {
  const char* epoch = treadle::environment("SOURCE_DATE_EPOCH");
  const std::time_t time = epoch ? static_cast<std::time_t>(std::strtoll(epoch, nullptr, 10)) : std::time(nullptr);
  std::tm parts{};
  gmtime_r(&time, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

}  // namespace

std::string manual_page(const std::vector<Command>& commands, const Command& of, const std::string& date) {
  std::string title = page_name(of);
  for (char& c : title) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  std::string text = fmt::format(".TH {} 1 {} \"treadle {}\" \"treadle's manual\"\n", title, date, treadle_version());
  text += fmt::format(".SH NAME\n{} \\- {}\n", page_name(of), word(summary(of)));
  text += ".SH SYNOPSIS\n" + synopsis(of) + section("ARGUMENTS", of.positionals) + section("OPTIONS", of.options);
  if (of.name.empty()) {
    text += ".SH COMMANDS\n";
    for (const Command& command : commands) {
      if (command.name.empty()) continue;
      text += fmt::format(".TP\n\\fBtreadle\\-{}\\fR(1)\n{}", command.name, prose(command.text));
    }
  }
  const std::string& status = commands[0].footer;
  text += ".SH EXIT STATUS\n" + prose(of.footer.empty() || of.name.empty() ? status : status + " " + of.footer);
  text += ".SH SEE ALSO\n";
  if (!of.name.empty()) return text + ".BR treadle (1)\n";
  std::string separator;
  for (const Command& command : commands) {
    if (command.name.empty()) continue;
    text += fmt::format("{}.BR treadle\\-{} (1)", separator, command.name);
    separator = ",\n";
  }
  return text + "\n";
}

namespace {

struct Describe {
  CLI::App& app;
  std::string shell, command, folder;

  std::string completion() const {
    const std::vector<Command> commands = commands_of(app);
    return shell == "bash"  ? bash_completion(commands)
           : shell == "zsh" ? zsh_completion(commands)
                            : fish_completion(commands);
  }

  std::string manual() const {
    const std::vector<Command> commands = commands_of(app);
    for (const Command& known : commands) {
      if (known.name == command) return manual_page(commands, known, date_of_pages());
    }
    throw UsageError(fmt::format("there is no command '{}'", command));
  }

  // Writes all files into the folders of an installation.
  void write_all() const {
    const std::vector<Command> commands = commands_of(app);
    const auto write = [&](const std::string& path, const std::string& text) {
      const std::filesystem::path file = std::filesystem::path(folder) / "share" / path;
      std::filesystem::create_directories(file.parent_path());
      write_file(file.string(), text);
    };
    write("bash-completion/completions/treadle", bash_completion(commands));
    write("zsh/site-functions/_treadle", zsh_completion(commands));
    write("fish/vendor_completions.d/treadle.fish", fish_completion(commands));
    for (const Command& known : commands) {
      write(fmt::format("man/man1/{}.1", page_name(known)), manual_page(commands, known, date_of_pages()));
    }
  }
};

}  // namespace

void add_describe(CLI::App& app) {
  const auto describe = std::make_shared<Describe>(Describe{app, {}, {}, {}});
  CLI::App& completion =
      *app.add_subcommand("completion", "Print a script that makes a shell complete the command line");
  completion.add_option("shell", describe->shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
  completion.callback([describe] { fmt::print("{}", describe->completion()); });
  CLI::App& manual = *app.add_subcommand("manual", "Print the manual page of the tool or of a command, for man -l -");
  manual.add_option("command", describe->command, "The command");
  manual.callback([describe] { fmt::print("{}", describe->manual()); });
  CLI::App& files = *app.add_subcommand("describe", "Write all completion scripts and manual pages");
  files.add_option("folder", describe->folder, "The prefix, below which they are share/man/man1/treadle.1 and so on")
      ->required();
  files.callback([describe] { describe->write_all(); });
  for (CLI::App* hidden : {&completion, &manual, &files}) hidden->group("");
}

}  // namespace cli
