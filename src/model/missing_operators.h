#pragma once
// What a model needs and treadle does not have: all of it in one message, since whoever has to supply it wants to know
// how much that is.

#include <string>

#include "model/functions.h"
#include "wire/onnx.h"

namespace treadle::model {

// A sentence with every operator that treadle lacks and how many nodes are of it, most first; of the graph, of bodies
// and of the functions that are called. Empty where there are fewer than two such operators.
std::string missing_operators(const wire::ModelProto& model, const FunctionTable& functions);

}  // namespace treadle::model
