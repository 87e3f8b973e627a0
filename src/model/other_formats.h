#pragma once
// Recognises files that are certainly not ONNX models by their first bytes.

#include <string_view>

#include "base/status.h"

namespace treadle::model {

// The format and what to do: "a gzip archive; unpack it first". Empty for bytes that may be a model.
std::string_view other_format(std::string_view bytes);

// Errors: kInvalidFile with the name of another format.
Status refuse_other_formats(std::string_view bytes);

}  // namespace treadle::model
