// The release of onnxruntime whose names and behaviours treadle offers. Everything else that states the release reads
// it here; tests/python/test_onnxruntime_version.py holds the files that cannot against it.
#pragma once

namespace treadle::dropin {

constexpr const char* kOnnxruntimeVersion = "1.32.0";

}  // namespace treadle::dropin
