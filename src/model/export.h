#pragma once
// ir::Graph -> ModelProto: what import_model() reads, after rewrites, for other programs to read.

#include <string>

#include "ir/graph.h"

namespace treadle::model {

// A graph of operators of the specification, as it is before planning. Functions are inlined; constants, wherever they
// are used, are initialisers of the top graph. Names of inputs and outputs stay; others get a number where one name
// stood for several values. Errors: kNotImplemented where functions brought versions of operators together that no one
// operator set has; kLimit above 2 GiB.
Result<std::string> export_model(const ir::Graph& graph);

}  // namespace treadle::model
