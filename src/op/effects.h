#pragma once
// Effects of a node, for rewrites that would run it more or less often.

#include "ir/graph.h"

namespace treadle {

// Whether data can make `node` fail.
bool can_fail(const ir::Node& node);
// Whether all inputs that decide sizes are constants. Unknown ones may be wrong even if the sizes follow without them.
bool knows_shape_inputs(const ir::Node& node);
// Whether `node` always gives the same for the same inputs, never fails, and has inputs and outputs of known sizes, so
// that inference of a moved copy cannot fail either. False for nodes with bodies and for nodes without inputs.
bool is_total(const ir::Node& node);

// For operators that pick positions of input 0 along attribute `axis`: whether input 1 is constant and all its
// positions are valid.
bool picks_by_constants(const ir::Node& node);

}  // namespace treadle
