#include "temporary_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "common.h"

namespace cli {

namespace fs = std::filesystem;

TemporaryFolder::TemporaryFolder() : path_((fs::temp_directory_path() / "treadle-XXXXXX").string()) {
  if (!mkdtemp(path_.data())) throw InputError(fmt::format("no temporary folder {}: {}", path_, std::strerror(errno)));
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TemporaryFolder::add(const std::string& name, std::string_view bytes) const {
  const std::string path = (fs::path(path_) / name).string();
  write_file(path, bytes);
  return path;
}

}  // namespace cli
