#include "common.h"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace cli {

namespace {

std::string coloured(const char* code, std::string_view text) {
  static const bool on = isatty(STDOUT_FILENO) && !std::getenv("NO_COLOR");
  return on ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

}  // namespace

void add_json(CLI::App& command, Common& common) {
  command.add_flag("--json", common.json, "Print one JSON document");
}

void add_session(CLI::App& command, Common& common) {
  command.add_option("--tier", common.tier, "How to run: program, native (loops compiled before they run) or judge")
      ->type_name("TIER");
  command
      .add_option("--weights", common.weights, "Weights of recurrences: f32, or f16 (rounded, half the memory traffic)")
      ->type_name("TYPE");
  command.add_option("--threads", common.threads, "Threads to use; 0: the CPUs that the process may use")
      ->check(CLI::Range(0, 4096));
  command.add_option("--dim", common.dimensions, "Fix a symbolic size, as in --dim batch=1")->type_name("NAME=SIZE");
}

treadle::SessionOptions session_options(const Common& common) {
  treadle::SessionOptions options;
  // Left out, loops become native code once that pays.
  if (common.tier == "program") options.set("jit", "off");
  if (common.tier == "native") options.set("jit", "always");
  if (!common.tier.empty() && common.tier != "native") options.set("tier", common.tier);
  if (!common.weights.empty()) options.set("weights", common.weights);
  options.threads(common.threads);
  for (const std::string& item : common.dimensions) {
    const size_t equals = item.find('=');
    char* end = nullptr;
    const std::string size = equals == std::string::npos ? "" : item.substr(equals + 1);
    const long long number = std::strtoll(size.c_str(), &end, 10);
    if (size.empty() || *end != 0) throw UsageError(fmt::format("--dim takes NAME=SIZE, not '{}'", item));
    options.dimension(item.substr(0, equals), number);
  }
  return options;
}

std::string bold(std::string_view text) {
  return coloured("1", text);
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

void progress(std::string_view text) {
  if (!isatty(STDERR_FILENO)) return;
  fmt::print(stderr, "\r\x1b[K{}", text.substr(0, 100));
  std::fflush(stderr);
}

void end_progress() {
  progress("");
}

std::string read_file(const std::string& path) {
  const std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "rb"));
  if (!file) throw InputError(fmt::format("{}: cannot be read", path));
  std::string bytes;
  char block[1 << 16];
  while (const size_t n = std::fread(block, 1, sizeof block, file.get())) bytes.append(block, n);
  if (std::ferror(file.get())) throw InputError(fmt::format("{}: cannot be read", path));
  return bytes;
}

void write_file(const std::string& path, std::string_view bytes) {
  std::unique_ptr<std::FILE, Close> file(std::fopen(path.c_str(), "wb"));
  const bool written = file && std::fwrite(bytes.data(), 1, bytes.size(), file.get()) == bytes.size();
  if (!written || std::fclose(file.release()) != 0) throw InputError(fmt::format("{}: cannot be written", path));
}

}  // namespace cli
