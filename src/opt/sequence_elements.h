#pragma once
// Reads the elements of a sequence from the tensor of which the elements are parts.

#include <unordered_map>

#include "ir/graph.h"
#include "opt/remarks.h"

namespace treadle::opt {

// Of lists that the caller gives and whose elements have the one shape that their type says.
using ListLengths = std::unordered_map<const ir::Value*, Dim>;

// SequenceLength and SequenceAt of a list that SplitToSequence cuts evenly, that is put together of tensors of one
// shape, or that is among `given`, become the size of that tensor and a Gather from it, where the position is inside of
// the list for sure: an error of SequenceAt stays one. Lists that loops only append to become scan outputs
// (opt/loop_sequences.h).
//
// Returns whether it changed anything. Types are then old, and more may follow from new ones; nodes that nobody needs
// any more are still there.
bool read_lists_as_tensors(ir::Graph& graph, const ListLengths& given, Remarks* remarks);

}  // namespace treadle::opt
