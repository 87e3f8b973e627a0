// Nodes of an onnxruntime graph, with their bodies and constants, as an ONNX model.
#pragma once

#include <span>
#include <string>

#include "graph.h"

namespace treadle::provider {

enum class ModelFor {
  kClaim,
  // States of loops may change their sizes, whatever the body says: onnxruntime looks at the types of elements alone.
  kClaimInBody,
  // Whether treadle takes the nodes. Constants that cannot be read from where the question is asked become inputs.
  kQuestion,
};

// The serialised model of `nodes` of `graph`. Its inputs are the values that the nodes take from elsewhere and that are
// no constants, its outputs are `outputs`.
std::string write_model(const OrtGraph* graph, std::span<const Node* const> nodes, const Values& outputs,
                        ModelFor purpose);

}  // namespace treadle::provider
