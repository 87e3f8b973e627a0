#pragma once
// Files for another program that go when it has ended.

#include <string>
#include <string_view>

namespace cli {

class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Writes a file, and returns its path.
  std::string add(const std::string& name, std::string_view bytes) const;

 private:
  std::string path_;
};

}  // namespace cli
