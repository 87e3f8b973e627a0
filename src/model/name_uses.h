#pragma once
// The definitions to which names in a model's graphs refer, recorded by the checker's walk so that an import need not
// look names up again. Not for models with functions, where they depend on the call.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/pointer_map.h"
#include "wire/onnx.h"

namespace treadle::model {

struct NameUses {
  // Numbers of definitions for all names of a graph that are not empty, in order: inputs; initializers that are not
  // inputs; for each node its inputs (the definitions that they refer to) and its outputs; then the graph's outputs.
  using Numbers = std::vector<uint32_t>;

  PointerMap<wire::GraphProto, std::unique_ptr<Numbers>> by_graph;  // bodies have lists of their own
  uint32_t definitions = 0;                                         // numbers are below this
  bool complete = true;
};

}  // namespace treadle::model
