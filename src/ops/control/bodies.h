#pragma once
// Checks that the operators with bodies share.

#include "op/context.h"
#include "op/op_def.h"

namespace treadle {

// The numbers of inputs and outputs that a body must have.
Status check_body(const ir::NodeInfo& node, const ir::Region& body, size_t inputs, size_t outputs);

// Input i (M, cond) is left out or holds one element: a scalar, or one element of any rank.
Status check_one_element(const InferContext& ctx, size_t i, std::string_view what);

// The types "V" of what goes into and out of bodies, by version, from version 13 on.
void add_value_types(OpBuilder& op);

}  // namespace treadle
