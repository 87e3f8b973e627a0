#pragma once
// Writes inferred types into a model, as `value_info` and as types of outputs, also in bodies. All other parts of the
// file stay as they are; functions stay calls.

#include "ir/graph.h"
#include "wire/parse.h"
#include "wire/pieces.h"

namespace treadle::model {

// `graph`: imported from `model`, which was read from `bytes`, and inferred, but not rewritten. Adds the types to
// `model` as well. `model` and `bytes` must outlive the result. Errors: kLimit above 2 GiB.
Result<wire::Pieces> annotate_types(wire::Parsed<wire::ModelProto>& model, std::string_view bytes,
                                    const ir::Graph& graph);

}  // namespace treadle::model
