#pragma once
// Where a model that is run once per block shows the edges of the blocks.

#include <span>
#include <string>

#include "ir/graph.h"

namespace treadle::stream {

// The first node that puts neighbouring positions along axis `axis` of `input` together, and begins anew in each run:
// windows that overlap, pads, a recurrence that begins with nothing. What follows from one of `states`, which are
// inputs, is not new in each run: windows over it see the block before. As a sentence; empty where there is none before
// the axis is lost.
std::string edges_of_blocks(const ir::Graph& graph, const ir::Value* input, int64_t axis,
                            std::span<const ir::Value* const> states);

}  // namespace treadle::stream
