#pragma once
// How errors name a node.

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace treadle {

// "path (Operator-version)", of the node of the model that `node` is a part of.
std::string node_place(const ir::NodeInfo& node);

// The attribute of nodes that a lowering or a rewrite puts in the place of `whole`: they are named as it is.
inline constexpr std::string_view kNamedAs = "named_as";
ir::Attribute named_as(const ir::NodeInfo& whole);

// Whether who names `whole` has named `node` with it.
bool is_part(const ir::NodeInfo& node, const ir::NodeInfo& whole);

}  // namespace treadle
