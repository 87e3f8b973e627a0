// The release of onnxruntime whose names and behaviours treadle offers. Everything else that states the release reads
// it here; tests/python/test_onnxruntime_version.py holds the files that cannot against it.
#pragma once

#include <cstdint>
#include <string_view>

namespace treadle::dropin {

constexpr const char* kOnnxruntimeVersion = "1.32.0";

// The version of the function table that a release brings is its second number.
constexpr uint32_t table_version(std::string_view release) {
  uint32_t version = 0;
  for (const char digit : release.substr(release.find('.') + 1)) {
    if (digit == '.') break;
    version = version * 10 + static_cast<uint32_t>(digit - '0');
  }
  return version;
}

}  // namespace treadle::dropin
