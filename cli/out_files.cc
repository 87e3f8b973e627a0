#include "out_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "arrays.h"
#include "common.h"

namespace cli {

std::vector<OutFile> out_files(const std::vector<std::string>& arguments, const std::vector<std::string>& names) {
  std::vector<OutFile> found;
  size_t next = 0;
  for (const std::string& item : arguments) {
    const size_t equals = item.find('=');
    const std::string path = equals == std::string::npos ? item : item.substr(equals + 1);
    const auto name = equals == std::string::npos ? names.begin() + static_cast<std::ptrdiff_t>(next++)
                                                  : std::find(names.begin(), names.end(), item.substr(0, equals));
    if (name >= names.end()) {
      throw UsageError(fmt::format("there is no output for --out {} (outputs: {})", item, fmt::join(names, ", ")));
    }
    if (path != "-" && !path.ends_with(".npy") && !path.ends_with(".pb")) {
      throw UsageError(fmt::format("--out {}: outputs are written as .npy or .pb, or as .npy to -", item));
    }
    found.push_back({static_cast<size_t>(name - names.begin()), path});
  }
  return found;
}

bool takes_output(const std::vector<OutFile>& files, bool json) {
  const auto count = std::count_if(files.begin(), files.end(), [](const OutFile& file) { return file.path == "-"; });
  if (count > 1) throw UsageError("standard output (-) takes one output");
  if (count > 0 && json) throw UsageError("--out - and --json both take standard output");
  return count > 0;
}

void write_output(const OutFile& file, const std::string& name, const treadle::Value& value) {
  write_file(file.path, file.path.ends_with(".pb") ? value.to_pb(name) : write_npy(value));
}

}  // namespace cli
