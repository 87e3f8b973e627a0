// onnxruntime-lib: where the library is by which programs for onnxruntime run on treadle.

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <system_error>

#include "common.h"

namespace cli {

namespace {

namespace fs = std::filesystem;

// Beside this tool in a build folder, or as both are installed.
fs::path library() {
  std::error_code failed;
  const fs::path tool = fs::read_symlink("/proc/self/exe", failed).parent_path();
  for (const fs::path& folder : {tool / "../lib/onnxruntime", tool / TREADLE_TOOL_TO_DROPIN}) {
    const fs::path file = folder / "libonnxruntime.so";
    if (!failed && fs::exists(file, failed)) return fs::canonical(folder) / file.filename();
  }
  throw InputError(
      "libonnxruntime.so is not installed beside this tool: a build from source has it, and the Debian "
      "package libtreadle0");
}

}  // namespace

void add_onnxruntime_lib(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "onnxruntime-lib",
      "Print where libonnxruntime.so is, by which programs for onnxruntime's C functions run on treadle");
  command->callback([] { fmt::print("{}\n", library().string()); });
}

}  // namespace cli
