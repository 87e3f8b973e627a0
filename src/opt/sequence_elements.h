#pragma once
// Reads the elements of a sequence from the tensor of which they are parts.

#include <span>

#include "ir/graph.h"
#include "opt/remarks.h"

namespace treadle::opt {

// SequenceLength and SequenceAt become the size of a tensor and a Gather from it, if SplitToSequence cuts the list
// evenly from that tensor, if the list is made of tensors of one shape, or if the caller gives it, and if the position
// is certainly inside of the list: an error of SequenceAt stays an error. Lists to which loops only append become scan
// outputs (opt/loop_sequences.h). `lengths`: of the caller's lists, parallel to the graph's inputs; known, or a symbol,
// if all elements have the shape in the list's type. It may be shorter than the inputs.
//
// Returns whether anything changed. Then types are out of date, new types may allow further changes, and dead nodes
// remain.
bool read_lists_as_tensors(ir::Graph& graph, std::span<const Dim> lengths, Remarks* remarks);

}  // namespace treadle::opt
