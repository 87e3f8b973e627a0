#pragma once
// Models that are texts, for those who read protobuf.

#include <memory>

#include "wire/mapped_file.h"

namespace treadle::model {

// The file itself, or if it is ONNX text (ir/text.h) the model that it says, serialised, in a file of the same path.
// Error: kInvalidFile, or kLimit, with file, line and column as place.
Result<std::shared_ptr<wire::MappedFile>> binary_model(std::shared_ptr<wire::MappedFile> file);

}  // namespace treadle::model
