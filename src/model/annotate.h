#pragma once
// Inferred types written into a model, as `value_info` and as types of outputs, in bodies too. Everything else of the
// file stays as it is; functions stay calls.

#include "ir/graph.h"
#include "wire/parse.h"
#include "wire/pieces.h"

namespace treadle::model {

// `graph` was imported from `model`, which was read from `bytes`, and inferred, not rewritten. The types are added to
// `model` as well; it and `bytes` must outlive the result. Error: kLimit above 2 GiB.
Result<wire::Pieces> annotate_types(wire::Parsed<wire::ModelProto>& model, std::string_view bytes,
                                    const ir::Graph& graph);

}  // namespace treadle::model
