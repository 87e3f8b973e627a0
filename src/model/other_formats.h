#pragma once
// Files that are surely no ONNX model, by their first bytes.

#include <string_view>

#include "base/status.h"

namespace treadle::model {

// What the bytes are instead of a model, and what helps: "a gzip archive; unpack it first". Empty for what may be one.
std::string_view other_format(std::string_view bytes);

// Error kInvalidFile, naming the format, for bytes of another one.
Status refuse_other_formats(std::string_view bytes);

}  // namespace treadle::model
