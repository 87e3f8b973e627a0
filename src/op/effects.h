#pragma once
// What a node may do, for rewrites that would move it to where it runs more or less often.

#include "ir/graph.h"

namespace treadle {

// Whether data can make `node` fail. Knows more than its operator's record: integer division by constants cannot.
bool can_fail(const ir::Node& node);
// Whether all inputs that decide about sizes are constants: others may be wrong ones, even where the sizes follow
// without them.
bool knows_shape_inputs(const ir::Node& node);
// Whether `node` gives the same for the same inputs, never fails, and has inputs and outputs of known sizes, so that
// inference of a moved copy cannot fail either. Nodes with bodies and nodes without inputs are not looked into: false.
bool is_total(const ir::Node& node);

}  // namespace treadle
