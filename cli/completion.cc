// Completion scripts. Each is one function over tables that the script contains; it does not call the tool.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>

#include "surface.h"

namespace cli {

namespace {

std::string replaced(std::string text, std::string_view characters, std::string_view before) {
  for (size_t at = 0; (at = text.find_first_of(characters, at)) != std::string::npos; at += before.size() + 1) {
    text.insert(at, before);
  }
  return text;
}

// Quotes a text within single quotes of bash and zsh.
std::string in_quotes(std::string text) {
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos; at += 4) text.replace(at, 1, "'\\''");
  return text;
}

std::vector<std::string> names_of(const std::vector<Argument>& options) {
  std::vector<std::string> names;
  for (const Argument& option : options) names.insert(names.end(), option.names.begin(), option.names.end());
  return names;
}

std::vector<std::string> names_of(const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (!command.name.empty()) names.push_back(command.name);
  }
  return names;
}

// The bash code that completes a value, or a positional argument.
std::string bash_value(const Argument& argument) {
  if (!argument.choices.empty()) return fmt::format("words='{}'", fmt::join(argument.choices, " "));
  switch (argument.kind) {
    case Argument::Kind::kFile:
      return "action=file";
    case Argument::Kind::kFolder:
      return "action=directory";
    case Argument::Kind::kOther:
      break;
  }
  return "words=";
}

std::string bash_command(const Command& command) {
  std::string text = fmt::format("    '{}')\n      case $previous in\n", command.name);
  for (const Argument& option : command.options) {
    if (option.placeholder.empty()) continue;
    text += fmt::format("        {}) {} ;;\n", fmt::join(option.names, " | "), bash_value(option));
  }
  text += fmt::format("        *)\n          if [[ $current == -* ]]; then words='{}'\n",
                      fmt::join(names_of(command.options), " "));
  if (!command.positionals.empty()) text += fmt::format("          else {}\n", bash_value(command.positionals[0]));
  return text + "          fi ;;\n      esac ;;\n";
}

}  // namespace

std::string bash_completion(const std::vector<Command>& commands) {
  std::string text = R"(# Completion of treadle's command line for bash, as `treadle completion bash` writes it.
_treadle() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command='' words='' action='' i
  # In --tier=native and x=x.npy bash takes the = for a word of its own.
  if [[ $current == = ]]; then
    current=''
  elif [[ $previous == = ]] && ((COMP_CWORD > 1)); then
    previous=${COMP_WORDS[COMP_CWORD - 2]}
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    [[ ${COMP_WORDS[i]} == -* ]] || { command=${COMP_WORDS[i]}; break; }
  done
  case $command in
)";
  for (const Command& command : commands) {
    if (!command.name.empty()) text += bash_command(command);
  }
  text += fmt::format("    '') words='{} {}' ;;\n", fmt::join(names_of(commands), " "),
                      fmt::join(names_of(commands[0].options), " "));
  return text + R"(  esac
  COMPREPLY=()
  if [[ $action ]]; then
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -A "$action" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  fi
}
complete -F _treadle treadle
)";
}

// --- zsh -------------------------------------------------------------------------------------------------------------

namespace {

// The zsh action that completes a value: ":message:action".
std::string zsh_value(const Argument& argument) {
  std::string action = " ";
  if (!argument.choices.empty()) {
    action = fmt::format("({})", fmt::join(argument.choices, " "));
  } else if (argument.kind == Argument::Kind::kFolder) {
    action = "_files -/";
  } else if (argument.kind == Argument::Kind::kFile) {
    action = "{compset -P \"*=\"; _files}";  // also completes NAME=FILE
  }
  return fmt::format(":{}:{}", replaced(argument.placeholder, ":[]", "\\"), action);
}

std::string zsh_option(const Argument& option) {
  std::string text;
  for (const std::string& name : option.names) {
    const std::string form = option.placeholder.empty() ? name : name + (name.starts_with("--") ? "=" : "+");
    text += fmt::format(" \\\n            '{}{}[{}]{}'", option.repeats ? "*" : "", form,
                        in_quotes(replaced(option.text, "\\:[]", "\\")),
                        option.placeholder.empty() ? "" : in_quotes(zsh_value(option)));
  }
  return text;
}

std::string zsh_command(const Command& command) {
  std::string text = fmt::format("        {})\n          _arguments -s", command.name);
  for (const Argument& option : command.options) text += zsh_option(option);
  for (const Argument& positional : command.positionals) {
    text += fmt::format(" \\\n            '{}{}'", positional.repeats ? "*" : "", in_quotes(zsh_value(positional)));
  }
  return text + " ;;\n";
}

}  // namespace

std::string zsh_completion(const std::vector<Command>& commands) {
  std::string text = R"(#compdef treadle
# Completion of treadle's command line for zsh, as `treadle completion zsh` writes it.
_treadle() {
  local curcontext=$curcontext state line
  typeset -A opt_args
  local -a commands
  commands=(
)";
  for (const Command& command : commands) {
    if (command.name.empty()) continue;
    text += fmt::format("    '{}:{}'\n", command.name, in_quotes(replaced(command.text, "\\:", "\\")));
  }
  text += "  )\n  _arguments -C";
  for (const Argument& option : commands[0].options) text += zsh_option(option);
  text += R"( \
            ':command:->command' '*::argument:->argument'
  case $state in
    command) _describe -t commands command commands ;;
    argument)
      case $words[1] in
)";
  for (const Command& command : commands) {
    if (!command.name.empty()) text += zsh_command(command);
  }
  return text + R"(      esac ;;
  esac
}
if [[ $funcstack[1] == _treadle ]]; then
  _treadle "$@"
else
  compdef _treadle treadle
fi
)";
}

// --- fish ------------------------------------------------------------------------------------------------------------

namespace {

std::string in_fish_quotes(const std::string& text) {
  return replaced(text, "\\'", "\\");
}

std::string fish_value(const Argument& argument) {
  if (!argument.choices.empty()) return fmt::format(" -x -a '{}'", fmt::join(argument.choices, " "));
  switch (argument.kind) {
    case Argument::Kind::kFile:
      return " -r -F";
    case Argument::Kind::kFolder:
      return " -x -a '(__fish_complete_directories)'";
    case Argument::Kind::kOther:
      break;
  }
  return " -x";
}

std::string fish_option(const std::string& command, const Argument& option) {
  std::string text = fmt::format("complete -c treadle -n '__treadle_command \"{}\"'", command);
  for (const std::string& name : option.names) {
    text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (!option.placeholder.empty()) text += fish_value(option);
  return text + fmt::format(" -d '{}'\n", in_fish_quotes(option.text));
}

}  // namespace

std::string fish_completion(const std::vector<Command>& commands) {
  std::string text = R"(# Completion of treadle's command line for fish, as `treadle completion fish` writes it.
# Whether the command is this one; "": none is there yet.
function __treadle_command
  for word in (commandline -opc)[2..-1]
    string match -q -- '-*' $word; and continue
    test $word = "$argv[1]"
    return
  end
  test -z "$argv[1]"
end
complete -c treadle -f
)";
  for (const Command& command : commands) {
    if (!command.name.empty()) {
      text += fmt::format("complete -c treadle -n '__treadle_command \"\"' -a {} -d '{}'\n", command.name,
                          in_fish_quotes(command.text));
    }
    for (const Argument& option : command.options) text += fish_option(command.name, option);
    if (command.positionals.empty()) continue;
    const Argument& positional = command.positionals[0];
    if (positional.kind == Argument::Kind::kOther && positional.choices.empty()) continue;
    const std::string value = positional.kind == Argument::Kind::kFile ? " -F" : fish_value(positional);
    text += fmt::format("complete -c treadle -n '__treadle_command {}'{}\n", command.name, value);
  }
  return text;
}

}  // namespace cli
