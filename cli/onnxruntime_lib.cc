// onnxruntime-lib: the path of the library with which programs for onnxruntime run on treadle.

#include <dlfcn.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <system_error>

#include "common.h"

namespace cli {

namespace {

namespace fs = std::filesystem;

// The folder of the tool's executable, or of the Python package's extension.
fs::path own_folder() {
  static const char anchor = 0;
  Dl_info info{};
  std::error_code failed;
  if (dladdr(&anchor, &info) && info.dli_fname && fs::path(info.dli_fname).has_parent_path()) {
    const fs::path file = fs::canonical(info.dli_fname, failed);
    if (!failed) return file.parent_path();
  }
  return fs::read_symlink("/proc/self/exe", failed).parent_path();
}

// The library beside the tool, as installed or in a build folder, or beside the Python package.
fs::path library() {
  std::error_code failed;
  const fs::path own = own_folder();
  const fs::path found[] = {own / TREADLE_TOOL_TO_DROPIN, own / "../lib/onnxruntime", own / "../treadle_onnxruntime"};
  for (const fs::path& folder : found) {
    const fs::path file = folder / "libonnxruntime.so";
    if (fs::exists(file, failed)) return fs::canonical(folder) / file.filename();
  }
  throw InputError(
      "libonnxruntime.so is not installed beside this tool. The wheel treadle-onnxruntime brings it (pip install "
      "treadle-onnxruntime), the Debian package libtreadle0, and a build from source");
}

}  // namespace

void add_onnxruntime_lib(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "onnxruntime-lib",
      "Print where libonnxruntime.so is, by which programs for onnxruntime's C functions run on treadle");
  command->callback([] { fmt::print("{}\n", library().string()); });
}

}  // namespace cli
