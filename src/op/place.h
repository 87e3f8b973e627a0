#pragma once
// Names of nodes in errors.

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace treadle {

// "path (Operator-version)" of the node of the model from which `node` was made.
std::string node_place(const ir::NodeInfo& node);

// An attribute of nodes that a lowering or a rewrite makes from `whole`: errors name `whole`.
inline constexpr std::string_view kNamedAs = "named_as";
ir::Attribute named_as(const ir::NodeInfo& whole);

// Whether errors name `node` as `whole`.
bool is_part(const ir::NodeInfo& node, const ir::NodeInfo& whole);

}  // namespace treadle
