#include "in_python.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/knobs.h"
#include "common.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX declares it nowhere

namespace cli {

namespace {

constexpr int kNoPackage = 97;  // an exit status that no command has

// As `python -m`, but without the working directory among the folders of modules: a file treadle.py there is not the
// package. A package that is not there is told apart from an error in it.
const std::string kProgram = fmt::format(R"(
import importlib.util, runpy, sys
if sys.path and not sys.path[0]:
    del sys.path[0]
if importlib.util.find_spec("treadle") is None:
    sys.exit({})
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
)",
                                         kNoPackage);

// While a child runs, Ctrl-C is for the child alone, which gets it from the terminal too.
class IgnoreInterrupts {
 public:
  IgnoreInterrupts() {
    struct sigaction ignored = {};
    ignored.sa_handler = SIG_IGN;
    sigaction(SIGINT, &ignored, &before_);
  }
  ~IgnoreInterrupts() { sigaction(SIGINT, &before_, nullptr); }
  IgnoreInterrupts(const IgnoreInterrupts&) = delete;
  IgnoreInterrupts& operator=(const IgnoreInterrupts&) = delete;

 private:
  struct sigaction before_ = {};
};

// While a child runs, a request to end is passed on to it, and its end is waited for.
class PassOnTermination {
 public:
  explicit PassOnTermination(pid_t child) {
    child_ = child;
    struct sigaction passing = {};
    passing.sa_handler = [](int signal) { kill(child_, signal); };
    sigaction(SIGTERM, &passing, &before_);
  }
  ~PassOnTermination() { sigaction(SIGTERM, &before_, nullptr); }
  PassOnTermination(const PassOnTermination&) = delete;
  PassOnTermination& operator=(const PassOnTermination&) = delete;

 private:
  static inline volatile std::sig_atomic_t child_ = 0;
  struct sigaction before_ = {};
};

class Attributes {
 public:
  Attributes() {
    posix_spawnattr_init(&attributes_);
    sigset_t defaults;
    sigemptyset(&defaults);
    sigaddset(&defaults, SIGINT);
    posix_spawnattr_setsigdefault(&attributes_, &defaults);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGDEF);
  }
  ~Attributes() { posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;
  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

std::string python() {
  const char* named = treadle::environment("TREADLE_PYTHON");
  return named && *named ? named : "python3";
}

int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

int run_in_python(const std::string& module, const std::vector<std::string>& arguments) {
  const std::string interpreter = python();
  std::vector<std::string> words = {interpreter, "-c", kProgram, module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  std::fflush(stdout);
  const IgnoreInterrupts ignore;
  const Attributes attributes;
  pid_t child = 0;
  const int problem = posix_spawnp(&child, interpreter.c_str(), nullptr, attributes.get(), pointers.data(), environ);
  if (problem != 0) {
    throw InputError(
        fmt::format("this command needs Python with the package treadle, and '{}' does not start: {}; set "
                    "TREADLE_PYTHON to the path of a Python that has it",
                    interpreter, std::strerror(problem)));
  }
  const PassOnTermination pass_on(child);
  const int status = status_of(child);
  if (status == kNoPackage) {
    throw InputError(
        fmt::format("this command needs the Python package treadle, which '{}' does not have: pip install "
                    "treadle, or set TREADLE_PYTHON to the path of a Python that has it",
                    interpreter));
  }
  return status;
}

}  // namespace cli
