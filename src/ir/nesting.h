#pragma once
// What a walk over all bodies of a graph tells of the whole: how deep it is nested, and whether the calling thread has
// stack to walk it (base/stack.h), and how large its constants are.

#include "ir/graph.h"

namespace treadle::ir {

// How many bodies lie inside of each other at most; 0: the region has nodes without bodies only. Takes no stack.
size_t nesting(const Region& region);

// kLimit where the calling thread has too little stack left.
Status check_stack(const Graph& graph);

// Bytes of the constants that nodes use, each counted once, and a little for each node.
size_t constant_bytes(const Graph& graph);

}  // namespace treadle::ir
