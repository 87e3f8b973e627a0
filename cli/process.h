#pragma once
// A shell command in a process group of its own, with a limit of time.

#include <string>
#include <string_view>

namespace cli {

struct Ending {
  enum Kind : unsigned char { kStatus, kSignal, kTimeout, kCtrlC };
  Kind kind = kStatus;
  int number = 0;     // the exit status or the signal
  bool said = false;  // whether the output has the text that was looked for
  double seconds = 0;
  std::string last_line;  // of the output; the beginning of it where it is long

  bool is_success() const { return kind == kStatus && number == 0; }
  bool is_like(const Ending& other) const { return kind == other.kind && number == other.number; }
};

// "exit status 1", "signal 11 (Segmentation fault)"
std::string to_string(const Ending& ending, double timeout);

// Runs `command` by /bin/sh without input, and looks for `text` in its output and its errors. At the end the whole
// group of processes is ended. After `timeout` seconds, or at Ctrl-C (bar.h), that is the end. May run in several
// threads. Throws InputError if no process can be made.
Ending run_command(const std::string& command, std::string_view text, double timeout);

// A path as one word of a shell command.
std::string shell_word(const std::string& path);

}  // namespace cli
