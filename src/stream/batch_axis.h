#pragma once
// Finds the batch axis of every input and output of a graph. Entries along the batch axis do not depend on each other,
// so one run over several entries gives the results of a run for each entry.

#include <vector>

#include "ir/graph.h"
#include "op/axes.h"

namespace treadle::stream {

// The symbol of the batch's size in the types of inputs.
inline constexpr std::string_view kBatchSymbol = "entries of the batch";

struct BatchAxes {
  std::vector<int64_t> inputs, outputs;  // parallel to the graph's; kNoAxis: all entries have the same value
};

// An input with a batch must have kBatchSymbol as the size of that axis. Leaves types in the graph. Errors:
// kInvalidArgument names the node that mixes entries.
Result<BatchAxes> find_batch_axes(ir::Graph& graph);

}  // namespace treadle::stream
