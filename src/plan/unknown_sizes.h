#pragma once
// Nodes that are lowered though planning does not know all their sizes, because data decides them. What a lowering
// writes does not check what the node's inference would. So a CheckSizes (ops/control/check_sizes.cc) asks the
// inference during the run, in front of what the lowering has written, and a CheckResult holds the results to the sizes
// that inference stated. Neither stands between an operand and its readers, so that passes see through them.

#include "ir/graph.h"

namespace treadle::plan {

// Whether no plan knows a size of an operand of `node`. `in_loop`: where sizes may be expressions of the number of the
// iteration.
bool has_unknown_sizes(const ir::Node& node, bool in_loop);
// Whether only the run knows whether `node`, which stands in `region`, takes the sizes of its operands.
bool depends_on_unknown_sizes(const ir::Node& node, const ir::Region& region);
// Puts a CheckSizes at the end of `region`, in front of `node`.
void ask_in_run(ir::Graph& graph, ir::Region& region, const ir::Node& node);
// Puts a CheckResult at the end of `region` where `stated`, what inference said of `made`, knows a size that the type
// of `made` does not know. `by`: the node that makes it.
void hold_in_run(ir::Graph& graph, ir::Region& region, const ir::Node& by, ir::Value* made, const Type& stated);

}  // namespace treadle::plan
