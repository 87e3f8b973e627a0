#pragma once
// Finds the batch axis of every input and output of a graph. Entries along the batch axis do not depend on each other,
// so one run over several entries gives what several runs over one entry each give.

#include <vector>

#include "ir/graph.h"
#include "op/axes.h"

namespace treadle::stream {

// Of the size of the batch, in the types of inputs.
inline constexpr std::string_view kBatchSymbol = "entries of the batch";

struct BatchAxes {
  std::vector<int64_t> inputs, outputs;  // parallel to the graph's; kNoAxis: the same for all entries
};

// Inputs have kBatchSymbol as the size of the axis where they have the batch. Leaves types in the graph. Errors:
// kInvalidArgument says which node mixes entries.
Result<BatchAxes> find_batch_axes(ir::Graph& graph);

}  // namespace treadle::stream
