#pragma once
// Checks shared by operators with bodies.

#include "op/context.h"
#include "op/op_def.h"

namespace treadle {

// Checks the numbers of a body's inputs and outputs.
Status check_body(const ir::NodeInfo& node, const ir::Region& body, size_t inputs, size_t outputs);

// Checks that input i (M, cond) is left out, or has one element, with any rank.
Status check_one_element(const InferContext& ctx, size_t i, std::string_view what);

// Declares the types "V" of inputs and outputs of bodies, by version, from version 13 on.
void add_value_types(OpBuilder& op);

}  // namespace treadle
