#pragma once

#include <cstddef>
#include <string>

namespace treadle::dropin {

// Throws if the file cannot be written completely.
void write_file(const std::string& path, const char* bytes, size_t size);

}  // namespace treadle::dropin
