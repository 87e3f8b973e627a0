#include "common.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>
#include <system_error>
#include <utility>

#include "bar.h"
#include "base/harmless.h"
#include "base/knobs.h"

namespace cli {

bool is_coloured() {
  return isatty(STDOUT_FILENO) && !treadle::environment("NO_COLOR");
}

namespace {

std::string coloured(const char* code, std::string_view text) {
  static const bool on = is_coloured();
  const std::string shown = treadle::harmless_lines(text);
  return on ? fmt::format("\x1b[{}m{}\x1b[0m", code, shown) : shown;
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void add_json(CLI::App& command, Common& common) {
  command.add_flag("--json", common.json, "Print one JSON document");
}

void add_quiet(CLI::App& command, Common& common) {
  command.add_flag("--quiet", common.quiet, "Show no bar on a terminal");
}

CLI::Validator one_of(const std::vector<std::string>& values) {
  const auto check = [values](const std::string& value) {
    const bool known = std::find(values.begin(), values.end(), value) != values.end();
    return known ? std::string() : fmt::format("'{}' is none of {}", value, fmt::join(values, ", "));
  };
  return CLI::Validator(check, "", fmt::to_string(fmt::join(values, " ")));
}

// `expected`: as in "a number above 0".
static CLI::Validator number(std::string expected, std::function<bool(double)> holds) {
  const auto check = [expected = std::move(expected), holds = std::move(holds)](const std::string& value) {
    double found = 0;
    const bool valid = CLI::detail::lexical_cast(value, found) && std::isfinite(found) && holds(found);
    return valid ? std::string() : fmt::format("expected {}, found '{}'", expected, value);
  };
  return CLI::Validator(check, "");
}

CLI::Validator from_to(int64_t low, int64_t high) {
  const auto holds = [=](double n) { return n >= static_cast<double>(low) && n <= static_cast<double>(high); };
  return number(fmt::format("a number from {} to {}", low, high), holds);
}

CLI::Validator above_zero() {
  return number("a number above 0", [](double n) { return n > 0; });
}

CLI::Validator zero_or_more() {
  return number("0 or a number above 0", [](double n) { return n >= 0; });
}

// The old name of the reference interpreter still works.
static std::string current_tier(const std::string& tier) {
  return tier == "judge" ? "reference" : tier;
}

void add_session(CLI::App& command, Common& common, const std::vector<std::string>& tiers) {
  command
      .add_option("--tier", common.tier, "How to run: program, native (loops compiled before they run) or reference")
      ->type_name("TIER")
      ->transform(current_tier)
      ->check(one_of(tiers));
  command
      .add_option("--weights", common.weights, "Weights of recurrences: f32, or f16 (rounded, half the memory traffic)")
      ->type_name("TYPE")
      ->check(one_of({"f32", "f16"}));
  command.add_flag("--copy-weights", common.copy_weights, "Copy weights into memory rather than map the model's files");
  command.add_option("--threads", common.threads, "Threads to use; 0: the CPUs that the process may use")
      ->check(from_to(0, 4096));
  command
      .add_option("--load-time-limit", common.load_time_limit, "Stop loading, and planning, after this many seconds")
      ->type_name("SECONDS");
  command.add_option("--load-memory-limit", common.load_memory_limit, "Bytes that loading, and planning, may use")
      ->type_name("BYTES");
  command.add_flag("--unbounded-load", common.unbounded_load,
                   "Compute from constants whatever can be, also where a small model makes much of it");
  command.add_option("--without", common.without, "Switch a rewrite off; may be repeated")
      ->type_name("PASS")
      ->allow_extra_args(false)
      ->check(one_of(treadle::pass_names()));
  command.add_option("--option", common.options, "Set any option of sessions, as in --option loop_condition=obeyed")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command.add_option("--dim", common.dimensions, "Fix a symbolic size, as in --dim batch=1")->type_name("NAME=SIZE");
}

// Sets the options given by --option.
static void set_named(treadle::SessionOptions& options, const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const size_t equals = text.find('=');
    if (equals == 0 || equals == std::string::npos) {
      throw UsageError(fmt::format("--option takes NAME=VALUE, not '{}'", text));
    }
    try {
      options.set(text.substr(0, equals), text.substr(equals + 1));
    } catch (const treadle::Error& error) {
      throw UsageError(error.what());
    }
  }
}

treadle::SessionOptions session_options(const Common& common) {
  treadle::SessionOptions options;
  treadle_options_set_interrupt(options.get(), interrupted, nullptr);
  // By default loops become native code once that pays.
  if (common.tier == "program") options.set("jit", "off");
  if (common.tier == "native") options.set("jit", "always");
  if (!common.tier.empty() && common.tier != "native") options.set("tier", common.tier);
  if (!common.weights.empty()) options.set("weights", common.weights);
  if (common.copy_weights) options.set("weight_files", "copy");
  options.threads(common.threads);
  options.limit_load_time(common.load_time_limit);
  options.limit_load_memory(common.load_memory_limit);
  if (common.unbounded_load) options.set("bounded_load", "0");
  if (!common.without.empty()) options.set("passes_off", fmt::format("{}", fmt::join(common.without, ",")));
  for (const auto& [name, size] : dimensions_of(common)) options.dimension(name, size);
  set_named(options, common.options);
  return options;
}

std::map<std::string, int64_t> dimensions_of(const Common& common) {
  std::map<std::string, int64_t> dimensions;
  for (const std::string& item : common.dimensions) {
    const size_t equals = std::min(item.find('='), item.size());
    const char* const end = item.data() + item.size();
    int64_t size = 0;
    const auto read = std::from_chars(item.data() + std::min(equals + 1, item.size()), end, size);
    if (equals == 0 || read.ec != std::errc() || read.ptr != end || size < 0) {
      throw UsageError(fmt::format("--dim takes NAME=SIZE, not '{}'", item));
    }
    if (!dimensions.emplace(item.substr(0, equals), size).second) {
      throw UsageError(fmt::format("--dim {} is given twice", item.substr(0, equals)));
    }
  }
  return dimensions;
}

std::string read_input(const std::string& path) {
  static bool is_read = false;
  if (path != "-") return treadle::read_file(path);
  if (std::exchange(is_read, true)) throw UsageError("standard input (-) is asked for twice, and gives its bytes once");
  return treadle::read_file("/dev/stdin");
}

Source source_of(const std::string& model) {
  static std::map<std::string, std::string> pipes;  // contents of pipes, for commands that read them again
  std::error_code ignored;
  if (model != "-" && !std::filesystem::is_fifo(model, ignored)) return {model.c_str(), nullptr, 0};
  auto pipe = pipes.find(model);
  if (pipe == pipes.end()) pipe = pipes.emplace(model, read_input(model)).first;
  return {nullptr, pipe->second.data(), pipe->second.size()};
}

// A command may open a model several times, so warnings are printed once.
static void tell_once(const std::vector<std::string>& warnings) {
  static std::set<std::string> told;
  for (const std::string& warning : warnings) {
    if (told.insert(warning).second) fmt::print(stderr, "treadle: {}\n", message_for_people(warning));
  }
}

treadle::Session open_session(const std::string& model, const Common& common, const std::string& dump) {
  const Source source = source_of(model);
  treadle::SessionOptions options = session_options(common);
  if (!dump.empty()) options.set("dump", dump);
  treadle::Session session =
      source.path ? treadle::Session(model, options) : treadle::Session(source.bytes, source.size, options);
  const std::vector<std::string> remarks = session.remarks();
  if (!remarks.empty()) throw UsageError(remarks[0]);
  tell_once(session.warnings());
  return session;
}

void print_lines(std::string_view text) {
  fmt::print("{}", treadle::harmless_lines(text));
}

std::string message_for_people(std::string_view message) {
  std::string shown = treadle::harmless_lines(message);
  for (size_t at = shown.find('\n'); at != std::string::npos; at = shown.find('\n', at + 1)) {
    if (at + 1 < shown.size() && shown[at + 1] != ' ') shown.insert(at + 1, "  ");
  }
  return shown;
}

std::string bold(std::string_view text) {
  return coloured("1", treadle::harmless(text));
}
std::string red(std::string_view text) {
  return coloured("31", text);
}
std::string green(std::string_view text) {
  return coloured("32", text);
}
std::string dim(std::string_view text) {
  return coloured("2", text);
}

std::string loops_text(const treadle::RunOptions& options) {
  std::istringstream lines(options.iterations());
  std::string text;
  for (std::string line; std::getline(lines, line);) text += (text.empty() ? "loops     " : "          ") + line + "\n";
  return text;
}

void write_file(const std::string& path, std::string_view bytes) {
  if (path == "-") {
    std::fwrite(bytes.data(), 1, bytes.size(), stdout);  // errors are noticed at the end (finish_output)
    return;
  }
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wb"));
  const bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  if (!written || std::fclose(file.release()) != 0) {
    throw InputError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  }
}

void finish_output() {
  errno = 0;
  const bool written = std::cout.flush() && std::fflush(stdout) == 0 && !std::ferror(stdout);
  if (!written) throw std::system_error(errno ? errno : EIO, std::generic_category(), "cannot write to file");
}

}  // namespace cli
