#pragma once
// Element types and kinds against an operator's type constraints.

#include <span>

#include "ir/graph.h"
#include "type/type.h"

namespace treadle {

// Whether the types of a node's inputs and outputs (null or unknown: nothing is said) are ones that its version allows,
// and those that share a type variable agree. Sizes do not matter.
// Errors: kInvalidModel with the argument, what is expected of it and what was found.
Status check_type_rules(const ir::NodeInfo& node, std::span<const Type* const> inputs,
                        std::span<const Type* const> outputs);

}  // namespace treadle
