#pragma once
// Models in onnxruntime's own format (.ort). onnxruntime's converter makes them from ONNX models for devices: the same
// graph, after onnxruntime's rewrites, as a FlatBuffer.

#include <string>
#include <string_view>

#include "base/status.h"

namespace treadle::model {

bool is_ort_file(std::string_view bytes);

// The serialised ONNX model in the file. Errors: kInvalidFile or kLimit, with the byte; kNotImplemented for versions of
// the format other than 4 to 6, and for graphs that were compiled for a device.
Result<std::string> onnx_of_ort_file(std::string_view bytes);

}  // namespace treadle::model
