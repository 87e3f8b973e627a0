#include "wire/write_file.h"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace treadle {

Status write_file(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  if (!file) return error(Code::kInvalidArgument, "{} cannot be written: {}", path, std::strerror(errno));
  return {};
}

}  // namespace treadle
