#pragma once
// Properties of a graph with all its bodies: the depth of nesting, whether the calling thread has stack to walk it
// (base/stack.h), and the size of its constants.

#include "ir/graph.h"

namespace treadle::ir {

// The number of bodies nested in each other; 0 if no node has a body. Needs no stack.
size_t nesting(const Region& region);

// Errors: kLimit if the calling thread has too little stack left.
Status check_stack(const Graph& graph);

// Bytes of the constants that nodes use, each counted once, plus a small amount per node.
size_t constant_bytes(const Graph& graph);

}  // namespace treadle::ir
