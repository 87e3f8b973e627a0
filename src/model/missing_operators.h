#pragma once
// All operators that a model needs and treadle lacks, in one message, so that a user sees the whole extent at once.

#include <string>

#include "model/functions.h"
#include "wire/onnx.h"

namespace treadle::model {

// A sentence with every missing operator and its number of nodes, most first: in the graph, in bodies and in functions
// that are called. Empty if fewer than two operators are missing.
std::string missing_operators(const wire::ModelProto& model, const FunctionTable& functions);

}  // namespace treadle::model
