#include "process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "bar.h"
#include "common.h"

extern char** environ;

namespace cli {

namespace {

constexpr int kTick = 20;  // milliseconds between looks at the clock and at Ctrl-C

// Looks for a text in output that comes in pieces, and keeps the last line.
class Output {
 public:
  explicit Output(std::string_view text) : text_(text), said_(text.empty()) {}

  void add(std::string_view piece) {
    if (!said_) {
      tail_.append(piece);
      said_ = tail_.find(text_) != std::string::npos;
      if (tail_.size() >= text_.size()) tail_.erase(0, tail_.size() - (text_.size() - 1));
    }
    for (const char c : piece) {
      if (c == '\n') {
        if (!line_.empty()) last_ = std::move(line_);
        line_.clear();
      } else if (line_.size() < kLongLine) {
        line_ += c;
      }
    }
  }
  bool said() const { return said_; }
  const std::string& last_line() const { return line_.empty() ? last_ : line_; }

 private:
  static constexpr size_t kLongLine = 300;

  std::string_view text_;
  bool said_;
  std::string tail_;  // in which the text may have begun
  std::string line_, last_;
};

class Child {
 public:
  explicit Child(const std::string& command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail(errno);
    output_ = ends[0];
    posix_spawn_file_actions_t files;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);  // by default a group of its own
    std::string shell = "/bin/sh", option = "-c", text = command;
    const std::array<char*, 4> arguments = {shell.data(), option.data(), text.data(), nullptr};
    const int failure = posix_spawn(&pid_, shell.c_str(), &files, &attributes, arguments.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    close(ends[1]);
    if (failure == 0) return;
    close(output_);
    fail(failure);
  }
  ~Child() {
    kill(-pid_, SIGKILL);
    if (!ended_) waitpid(pid_, nullptr, 0);
    close(output_);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Passes on what has been written, after a tick at the latest.
  void read_to(Output& output) {
    pollfd waits = {.fd = closed_ ? -1 : output_, .events = POLLIN, .revents = 0};
    if (poll(&waits, 1, kTick) <= 0) return;
    std::array<char, 65536> piece;
    const ssize_t size = read(output_, piece.data(), piece.size());
    if (size > 0) output.add({piece.data(), static_cast<size_t>(size)});
    closed_ = size == 0;
  }
  // Whether it has ended; sets `ending`.
  bool has_ended(Ending& ending) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) != pid_) return false;
    ended_ = true;
    ending.kind = WIFSIGNALED(status) ? Ending::kSignal : Ending::kStatus;
    ending.number = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    return true;
  }
  // What is still in the pipe; others may have it open.
  void drain_to(Output& output) {
    for (;;) {
      pollfd waits = {.fd = output_, .events = POLLIN, .revents = 0};
      if (closed_ || poll(&waits, 1, 0) <= 0) return;
      read_to(output);
    }
  }

 private:
  [[noreturn]] static void fail(int number) {
    throw InputError(fmt::format("no process can be made: {}", std::strerror(number)));
  }

  pid_t pid_ = -1;
  int output_ = -1;
  bool closed_ = false, ended_ = false;
};

}  // namespace

std::string to_string(const Ending& ending, double timeout) {
  switch (ending.kind) {
    case Ending::kStatus:
      return fmt::format("exit status {}", ending.number);
    case Ending::kSignal:
      return fmt::format("signal {} ({})", ending.number, strsignal(ending.number));
    case Ending::kTimeout:
      return fmt::format("no end within {:g} s", timeout);
    case Ending::kCtrlC:
      break;
  }
  return "interrupted";
}

Ending run_command(const std::string& command, std::string_view text, double timeout) {
  const Stopwatch watch;
  Output output(text);
  Ending ending;
  Child child(command);
  while (!child.has_ended(ending)) {
    ending.kind = interrupted() ? Ending::kCtrlC : Ending::kTimeout;
    if (interrupted() || watch.seconds() > timeout) break;
    child.read_to(output);
  }
  child.drain_to(output);
  ending.seconds = watch.seconds();
  ending.said = output.said();
  ending.last_line = output.last_line();
  return ending;
}

std::string shell_word(const std::string& path) {
  const bool is_plain = !path.empty() && std::all_of(path.begin(), path.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr("/._-+,", c);
  });
  if (is_plain) return path;
  std::string word = "'";
  for (const char c : path) c == '\'' ? word += "'\\''" : word += c;
  return word + "'";
}

}  // namespace cli
