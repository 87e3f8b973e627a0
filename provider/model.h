// Nodes of an onnxruntime graph, with their bodies and constants, as an ONNX model.
#pragma once

#include <span>
#include <string>

#include "graph.h"

namespace treadle::provider {

// Whether the sizes that a graph says values have can be relied on. States of loops may change theirs, whatever the
// body says: onnxruntime looks at the types of elements alone.
enum class DeclaredSizes : bool { kUnknown, kTrusted };

// The serialised model of `nodes` of `graph`. Its inputs are the values that the nodes take from elsewhere and that are
// no constants, its outputs are `outputs`.
std::string write_model(const OrtGraph* graph, std::span<const Node* const> nodes, const Values& outputs,
                        DeclaredSizes sizes);

}  // namespace treadle::provider
