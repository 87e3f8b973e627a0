#pragma once
// ir::Graph -> ModelProto: the inverse of import_model(), after rewrites, for other programs.

#include <string>

#include "ir/graph.h"

namespace treadle::model {

// `graph`: one of operators of the specification, before planning. Functions are inlined. All constants become
// initialisers of the top graph. Names of inputs and outputs stay; a number makes other names unique. Errors:
// kNotImplemented if functions imported versions of operators that no single operator set has; kLimit above 2 GiB.
Result<std::string> export_model(const ir::Graph& graph);

}  // namespace treadle::model
