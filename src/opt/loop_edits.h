#pragma once
// Changes to loops that several rewrites make.

#include "ir/graph.h"

namespace treadle::opt {

// The node at `at` of `region` goes into then_branch of a new If on `condition`, a copy of it into else_branch. Returns
// the If, which stands at `at` and is called `name`.
ir::Node& put_into_branches(ir::Graph& graph, ir::Region& region, size_t at, ir::Value* condition,
                            std::string_view name);

// How often `region`, with all that is nested in it, reads `v`; its outputs count.
size_t count_uses(const ir::Region& region, const ir::Value* v);

}  // namespace treadle::opt
