#pragma once
// Finds where a model that runs once per block shows the edges of the blocks.

#include <span>
#include <string>

#include "ir/graph.h"

namespace treadle::stream {

// The first node that combines neighbouring positions along axis `axis` of `input` and begins anew in each run:
// overlapping windows, pads, a recurrence without an initial state. Values computed from `states`, which are inputs,
// are not new in each run: windows over them see the block before. Returns a sentence; empty if there is no such node
// before the axis is lost.
std::string edges_of_blocks(const ir::Graph& graph, const ir::Value* input, int64_t axis,
                            std::span<const ir::Value* const> states);

}  // namespace treadle::stream
