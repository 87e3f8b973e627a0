#pragma once
// Shared by the commands.

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "treadle/treadle.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): the library calls itself so
class App;
class Validator;
}  // namespace CLI

namespace cli {

// The number of the element type of strings.
inline constexpr int kString = 8;

// Exit statuses, as --help lists them (main.cc).
inline constexpr int kOk = 0;
inline constexpr int kFailed = 1;
inline constexpr int kUsage = 2;
inline constexpr int kInterrupted = 130;

// An invalid command line.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
// A file or value that the tool itself cannot work with.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Common {
  bool json = false;
  bool quiet = false;
  std::string tier;  // "": the default
  std::string weights;
  bool copy_weights = false;
  int threads = 0;
  double load_time_limit = 0;
  size_t load_memory_limit = 0;
  bool unbounded_load = false;
  std::vector<std::string> dimensions;  // "batch=1"
  std::vector<std::string> without;     // names of rewrites
  std::vector<std::string> options;     // "loop_condition=obeyed"
};

// A check of an option's value whose error lists the valid ones, and which does not change the help. Its name holds the
// list, for code that reads the options (surface.h).
CLI::Validator one_of(const std::vector<std::string>& values);
// Numbers of an option.
CLI::Validator from_to(int64_t low, int64_t high);
CLI::Validator above_zero();
CLI::Validator zero_or_more();
void add_json(CLI::App& command, Common& common);
void add_quiet(CLI::App& command, Common& common);  // for commands with a bar
void add_session(CLI::App& command, Common& common,
                 const std::vector<std::string>& tiers = {"program", "native", "reference"});
treadle::SessionOptions session_options(const Common& common);
std::map<std::string, int64_t> dimensions_of(const Common& common);  // UsageError for a text that is not NAME=SIZE
// The bytes of a file; "-" is standard input. UsageError if standard input is requested twice.
std::string read_input(const std::string& path);
// A model for functions of the library: a path or, if that is null, the bytes from a pipe or from standard input ("-"),
// which can be read only once.
struct Source {
  const char* path;
  const void* bytes;
  size_t size;
};
Source source_of(const std::string& model);
// UsageError for an option without effect on this model. `dump`: a rewrite, for Session::dump_graph.
treadle::Session open_session(const std::string& model, const Common& common, const std::string& dump = "");

// Whether standard output is a terminal and NO_COLOR is not set.
bool is_coloured();
// Texts with names of a model are harmless for terminals (base/harmless.h) behind these. In colours if is_coloured();
// bold() is for names.
std::string bold(std::string_view text);
std::string red(std::string_view text);
std::string green(std::string_view text);
std::string dim(std::string_view text);
// A message of the library, which may have names in it. Its further lines are indented, so that none of them passes for
// a line of the tool.
std::string message_for_people(std::string_view message);
// Prints a text of the library.
void print_lines(std::string_view text);

class Stopwatch {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count(); }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

// Lines with the iterations of loops, below a heading; empty without loops.
std::string loops_text(const treadle::RunOptions& options);

// "-" is standard output.
void write_file(const std::string& path, std::string_view bytes);
// Throws std::system_error, as fmt::print does, if printed text could not be written (a full disk).
void finish_output();

void add_run(CLI::App& app, int& status);
void add_compile(CLI::App& app, int& status);
void add_convert(CLI::App& app, int& status);
void add_test(CLI::App& app, int& status);
void add_show(CLI::App& app, int& status);
void add_check(CLI::App& app, int& status);
void add_infer(CLI::App& app, int& status);
void add_ops(CLI::App& app, int& status);
void add_options(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
void add_serve(CLI::App& app, int& status);
void add_stream(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_profile(CLI::App& app, int& status);
void add_bisect(CLI::App& app, int& status);
void add_compare(CLI::App& app, int& status);
void add_report(CLI::App& app, int& status);
void add_reduce(CLI::App& app, int& status);
void add_triton_config(CLI::App& app, int& status);
// Hidden commands, which describe the others to shells and in manual pages.
void add_onnxruntime_lib(CLI::App& app);
void add_describe(CLI::App& app);

}  // namespace cli
