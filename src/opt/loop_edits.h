#pragma once
// Changes to loops that several rewrites make.

#include "ir/graph.h"

namespace treadle::opt {

// Moves the node at `at` of `region` into then_branch of a new If on `condition`, and puts a copy into else_branch.
// Returns the If, which stands at `at` and is called `name`.
ir::Node& put_into_branches(ir::Graph& graph, ir::Region& region, size_t at, ir::Value* condition,
                            std::string_view name);

// The number of reads of `v` in `region` and all nested regions, as outputs too.
size_t count_uses(const ir::Region& region, const ir::Value* v);

}  // namespace treadle::opt
