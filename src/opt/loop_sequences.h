#pragma once
// Turns sequences and tensors to which a Loop only appends into scan outputs, or into tensors that grow.

#include "opt/remarks.h"

namespace treadle::opt {

// Rewrites the Loop at `at` of `region`. `iterations`: its trip count; unknown if it may end in any iteration. A
// sequence becomes a scan output if it begins empty, each iteration appends one tensor of known sizes, and the trip
// count is known or a symbol. Behind the loop, the scan output is cut into a sequence again, or is the result itself if
// the model only joins the sequence. A tensor that begins without elements, and to which each iteration appends one
// piece of known sizes (Concat), becomes a scan output of any loop. Needs types, and does not update types of the nodes
// behind. Returns whether anything changed.
bool lists_to_rows(ir::Graph& graph, ir::Region& region, size_t at, const Dim& iterations, Remarks* remarks);

// Rewrites the Loop at `at` of `region`. A sequence becomes a tensor that grows if it begins empty, each iteration
// appends one tensor, and behind the loop the sequence is only joined, along an axis that the tensors have. The tensors
// may differ along that axis; their other sizes must be known. Needs types. Returns whether anything changed.
bool lists_to_growing(ir::Graph& graph, ir::Region& region, size_t at, Remarks* remarks);

}  // namespace treadle::opt
