#pragma once
// The files with data of a model's tensors. Each is looked at once.

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace treadle::checking {

struct ExternalFile {
  std::string problem;  // why data cannot be read from it; empty if it can
  std::string expected, found;
  uint64_t size = 0;
};

class ExternalFiles {
 public:
  // `folder`: that of the model, as given; empty if unknown, and then names are checked but no files.
  explicit ExternalFiles(std::string folder) : folder_(std::move(folder)) {}

  bool has_folder() const { return !folder_.empty(); }
  const ExternalFile& look_at(std::string_view location);

 private:
  ExternalFile examine(std::string_view location) const;

  std::string folder_;
  std::map<std::string, ExternalFile, std::less<>> files_;
};

}  // namespace treadle::checking
