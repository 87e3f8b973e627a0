#pragma once
// Nodes that are lowered though planning does not know all their sizes, because data decides them. What a lowering
// writes does not check what the node's inference would. So a CheckSizes (ops/control/check_sizes.cc) asks the
// inference during the run, in front of what the lowering has written.

#include "ir/graph.h"

namespace treadle::plan {

// False within loops, where passes have to see through the operands, and for a node of one operand, which has no other
// to agree with.
bool depends_on_unknown_sizes(const ir::Node& node, const ir::Region& region);
// Puts a CheckSizes at the end of `region`, in front of `node`, whose first operand passes through it from now on.
void ask_in_run(ir::Graph& graph, ir::Region& region, ir::Node& node);

}  // namespace treadle::plan
