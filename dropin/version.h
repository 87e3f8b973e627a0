// The release of onnxruntime whose names and behaviours treadle offers. All other code reads it here; for files that
// cannot, tests/python/test_onnxruntime_version.py compares the release.
#pragma once

#include <cstdint>
#include <string_view>

namespace treadle::dropin {

constexpr const char* kOnnxruntimeVersion = "1.32.0";

// The version of a release's function table is the release's second number.
constexpr uint32_t table_version(std::string_view release) {
  uint32_t version = 0;
  for (const char digit : release.substr(release.find('.') + 1)) {
    if (digit == '.') break;
    version = version * 10 + static_cast<uint32_t>(digit - '0');
  }
  return version;
}

}  // namespace treadle::dropin
