#pragma once
// Models that are texts or in onnxruntime's own format, for those who read protobuf, and for errors in them.

#include <memory>

#include "wire/mapped_file.h"

namespace treadle::model {

// The file itself, or if it is ONNX text (ir/text.h) or an .ort file (model/ort_file.h) the model that it says,
// serialised, in a file of the same path. Error: kInvalidFile, or kLimit, with file, line and column as place; for a
// file of another format, which.
Result<std::shared_ptr<wire::MappedFile>> binary_model(std::shared_ptr<wire::MappedFile> file);

// An error in the model of `file`, with the file's name before its place ("model" for bytes). If the file is a text and
// the place names a node or an initializer, line and column follow the name, and the message shows the line: it is
// looked up in the text, which is read for it.
Status in_file(Status status, const wire::MappedFile& file);

}  // namespace treadle::model
