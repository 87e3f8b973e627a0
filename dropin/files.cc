#include "files.h"

#include <fstream>

#include "api.h"

namespace treadle::dropin {

void write_file(const std::string& path, const char* bytes, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes, static_cast<std::streamsize>(size));
  if (!file.flush()) throw Failure(ORT_FAIL, "cannot write '" + path + "'");
}

}  // namespace treadle::dropin
