// Writes nodes of an onnxruntime graph, with their bodies and constants, as an ONNX model.
#pragma once

#include <span>
#include <string>

#include "graph.h"

namespace treadle::provider {

enum class ModelFor {
  kClaim,
  // States of loops may change their sizes, whatever the body declares: onnxruntime checks the types of elements only.
  kClaimInBody,
  // To find out whether treadle takes the nodes. Constants that cannot be read in this place become inputs.
  kQuestion,
};

// The serialised model of `nodes` of `graph`. Its inputs are the values that the nodes take from other nodes, without
// constants; its outputs are `outputs`.
std::string write_model(const OrtGraph* graph, std::span<const Node* const> nodes, const Values& outputs,
                        ModelFor purpose);

}  // namespace treadle::provider
