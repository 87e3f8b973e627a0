#pragma once
// What the names of a model's graphs stand for, noted by a walk that had to find out anyway, so that an import does not
// look them up again. Only for models without functions, whose names depend on the call.

#include <cstdint>
#include <memory>
#include <vector>

#include "base/pointer_map.h"
#include "wire/onnx.h"

namespace treadle::model {

struct NameUses {
  // Definitions by number, in the order in which a graph has names that are not empty: inputs, initializers that are no
  // inputs, then of each node what its inputs refer to and its outputs, then what the graph's outputs refer to.
  using Numbers = std::vector<uint32_t>;

  PointerMap<wire::GraphProto, std::unique_ptr<Numbers>> by_graph;  // bodies have lists of their own
  uint32_t definitions = 0;                                         // numbers are below
  bool complete = true;
};

}  // namespace treadle::model
