#pragma once
// Writes types into the bytes of a model; all other bytes stay as they are.

#include "wire/onnx.h"
#include "wire/pieces.h"

namespace treadle::model {

// `bytes` with the types of outputs and value infos replaced by those of `model`'s graph and its bodies. Value infos
// that `model` has in addition go to the end of their graph. Otherwise `model` must equal the model read from `bytes`,
// which must outlive the result. Errors: kLimit above 2 GiB - 1, protobuf's limit.
Result<wire::Pieces> splice_types(std::string_view bytes, const wire::ModelProto& model);

}  // namespace treadle::model
