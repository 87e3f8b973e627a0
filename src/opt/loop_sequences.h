#pragma once
// Turns sequences and tensors to which a Loop only appends into scan outputs, or into tensors that grow.

#include "opt/remarks.h"

namespace treadle::opt {

// Of the Loop at `at` of `region`, which runs `trips` trips; unknown: it may end at any. Sequences that begin empty and
// get one tensor of known sizes behind the others in each trip become scan outputs if trips are known or a symbol;
// behind the loop they are cut into sequences again, or, where they are joined at once, are the result as they are.
// Tensors that begin without elements and get one piece of known sizes behind the others (Concat) become scan outputs
// of any loop. Wants types, and leaves those of what follows as they were. Returns whether there were any.
bool lists_to_rows(ir::Graph& graph, ir::Region& region, size_t at, const Dim& trips, Remarks* remarks);

// Of the Loop at `at` of `region`: sequences that begin empty, get one tensor behind the others in each trip, and are
// only joined behind the loop, along an axis that the tensors have, become tensors that grow. The tensors may differ in
// that axis; their other sizes are known. Wants types. Returns whether there were any.
bool lists_to_growing(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks);

}  // namespace treadle::opt
