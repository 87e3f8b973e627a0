#pragma once
// Types into the bytes of a model, all other bytes staying as they are.

#include "wire/onnx.h"
#include "wire/pieces.h"

namespace treadle::model {

// `bytes` with the types of the outputs and value infos of `model`'s graph and its bodies in place of those that they
// have there; value infos that `model` has behind those of a graph go to the end of that graph. Apart from them `model`
// is what was read from `bytes`, which must outlive the result. Error: kLimit above what protobuf allows, 2 GiB - 1.
Result<wire::Pieces> splice_types(std::string_view bytes, const wire::ModelProto& model);

}  // namespace treadle::model
