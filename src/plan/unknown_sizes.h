#pragma once
// Nodes that are lowered although planning does not know all their sizes, because data decides them. The nodes of a
// lowering do not check everything that the inference of the lowered node checks. So a CheckSizes
// (ops/control/check_sizes.cc) in front of them runs that inference during the run, and a CheckResult checks that
// results have the sizes that inference stated. Neither is between an operand and its readers, so passes do not see
// them.

#include "ir/graph.h"

namespace treadle::plan {

// Whether an operand of `node` has a size that no plan knows. `in_loop`: sizes may depend on the iteration's number.
bool has_unknown_sizes(const ir::Node& node, bool in_loop);
// Whether only the run knows if `node`, which is in `region`, accepts the sizes of its operands.
bool depends_on_unknown_sizes(const ir::Node& node, const ir::Region& region);
// Puts a CheckSizes at the end of `region`, in front of `node`.
void ask_in_run(ir::Graph& graph, ir::Region& region, const ir::Node& node);
// Puts a CheckResult at the end of `region` if `stated`, the type that inference stated for `made`, knows a size that
// the type of `made` does not. `by`: the node that makes `made`.
void hold_in_run(ir::Graph& graph, ir::Region& region, const ir::Node& by, ir::Value* made, const Type& stated);

}  // namespace treadle::plan
