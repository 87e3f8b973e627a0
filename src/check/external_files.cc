#include "check/external_files.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

namespace treadle::checking {

namespace {

namespace fs = std::filesystem;

ExternalFile refused(std::string problem, std::string expected, std::string found) {
  return {std::move(problem), std::move(expected), std::move(found), 0};
}

bool climbs(std::string_view location) {
  while (!location.empty()) {
    const size_t slash = location.find_first_of("/\\");
    if (location.substr(0, slash) == "..") return true;
    if (slash == std::string_view::npos) break;
    location.remove_prefix(slash + 1);
  }
  return false;
}

bool lies_inside(const fs::path& path, const fs::path& folder) {
  const auto [in_folder, in_path] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  return in_folder == folder.end() && in_path != path.end();
}

}  // namespace

const ExternalFile& ExternalFiles::look_at(std::string_view location) {
  auto it = files_.find(location);
  if (it == files_.end()) it = files_.emplace(std::string(location), examine(location)).first;
  return it->second;
}

ExternalFile ExternalFiles::examine(std::string_view location) const {
  if (location.empty() || location.find('\0') != std::string_view::npos) {
    return refused("its location is no file name", "a file in the model's folder", "an empty or broken name");
  }
  if (location[0] == '/' || location[0] == '\\' || (location.size() > 1 && location[1] == ':')) {
    return refused("its location is an absolute path", "a path inside the model's folder", std::string(location));
  }
  if (climbs(location)) {
    return refused("its location leads out of the model's folder", "a path without \"..\"", std::string(location));
  }
  if (!has_folder()) return {};
  std::error_code failed;
  const fs::path path = fs::path(folder_) / fs::path(location);
  const fs::file_status status = fs::symlink_status(path, failed);
  const std::string shown = path.string();
  if (!fs::exists(status)) return refused("the file that it is stored in does not exist", shown, "no such file");
  if (fs::is_symlink(status)) {
    return refused("the file that it is stored in is a symbolic link", "a file of the model's folder",
                   "a link to " + fs::read_symlink(path, failed).string());
  }
  const fs::path real = fs::canonical(path, failed), folder = fs::canonical(folder_, failed);
  if (failed || !lies_inside(real, folder)) {
    return refused("a folder on the way to its file is a link that leads out of the model's folder",
                   "a file inside " + folder.string(), real.string());
  }
  if (!fs::is_regular_file(status)) {
    return refused("what it is stored in is no file", "a regular file", shown);
  }
  if (fs::hard_link_count(path, failed) > 1) {
    return refused("the file that it is stored in has several names (hard links), which readers refuse",
                   "a file of its own", shown);
  }
  ExternalFile file;
  file.size = fs::file_size(path, failed);
  return file;
}

}  // namespace treadle::checking
