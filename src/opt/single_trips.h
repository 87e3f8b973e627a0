#pragma once
// Loops over one step.

#include "ir/graph.h"

namespace treadle::opt {

class Journal;

// A Scan over one step of known sizes, with a body of nodes that cannot fail, is replaced by that body. Results are the
// same bit for bit. Nothing goes into the journal, which tells of loops.
void unroll_single_trips(ir::Graph& graph, Journal* journal = nullptr);

}  // namespace treadle::opt
