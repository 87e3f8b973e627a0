#pragma once
// Models that are texts or in onnxruntime's own format: conversion to protobuf, and places of errors in them.

#include <memory>

#include "wire/mapped_file.h"

namespace treadle::model {

// The file itself. For ONNX text (ir/text.h) or an .ort file (model/ort_file.h), the model in it, serialised, in a file
// of the same path. Errors: kInvalidFile or kLimit, with file, line and column as place; kInvalidFile for another
// format, with its name.
Result<std::shared_ptr<wire::MappedFile>> binary_model(std::shared_ptr<wire::MappedFile> file);

// An error in the model of `file`, with the file's name in front of its place ("model" for bytes). If the file is a
// text and the place names a node or an initializer, line and column follow the name, and the message shows the line.
// For that, the text is parsed again.
Status in_file(Status status, const wire::MappedFile& file);

}  // namespace treadle::model
