#pragma once
// Lists whose elements are parts of one tensor are read from the tensor.

#include "check/inference.h"
#include "ir/graph.h"
#include "opt/journal.h"

namespace treadle::opt {

// SequenceLength and SequenceAt of a list that SplitToSequence cuts evenly, or that is put together of tensors of one
// shape, become the size of that tensor and a Gather from it, where the position is inside of the list for sure: an
// error of SequenceAt stays one. Lists that loops only append to become scan outputs (opt/loop_lists.h).
//
// Returns whether it changed anything. Types are then old, and more may follow from new ones; nodes that nobody needs
// any more are still there.
bool read_lists_as_tensors(ir::Graph& graph, Journal* journal);

}  // namespace treadle::opt
