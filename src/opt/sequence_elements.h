#pragma once
// Reads the elements of a sequence from the tensor of which the elements are parts.

#include <span>

#include "ir/graph.h"
#include "opt/remarks.h"

namespace treadle::opt {

// SequenceLength and SequenceAt of a list that SplitToSequence cuts evenly, that is put together of tensors of one
// shape, or that the caller gives, become the size of that tensor and a Gather from it, where the position is inside of
// the list for sure: an error of SequenceAt stays one. Lists that loops only append to become scan outputs
// (opt/loop_sequences.h). `lengths` has those of the lists that the caller gives, parallel to the graph's inputs:
// known, or a symbol, where all elements have the shape that the list's type says. It may be shorter than the inputs.
//
// Returns whether it changed anything. Types are then old, and more may follow from new ones; nodes that nobody needs
// any more are still there.
bool read_lists_as_tensors(ir::Graph& graph, std::span<const Dim> lengths, Remarks* remarks);

}  // namespace treadle::opt
