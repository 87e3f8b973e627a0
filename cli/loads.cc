#include "loads.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "bar.h"
#include "common.h"

namespace cli {

namespace {

// Never returns. The parent's files and locks are its own business: nothing is flushed, and nothing is destroyed.
[[noreturn]] void open_and_end(const std::string& path) {
  try {
    Common common;
    common.threads = 1;
    common.options = {"jit=off"};
    const treadle::Session session(path, session_options(common));
  } catch (const std::exception&) {
    _exit(kFailed);
  }
  _exit(kOk);
}

}  // namespace

bool loads(const std::string& path, double timeout) {
  const pid_t child = fork();
  if (child < 0) throw InputError(fmt::format("no process can be made: {}", std::strerror(errno)));
  if (child == 0) open_and_end(path);
  const Stopwatch watch;
  int status = 0;
  while (waitpid(child, &status, WNOHANG) != child) {
    if (interrupted() || watch.seconds() > timeout) {
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == kOk;
}

}  // namespace cli
