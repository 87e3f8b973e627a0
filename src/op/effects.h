#pragma once
// What a node may do, for rewrites that would move it to where it runs more or less often.

#include "ir/graph.h"

namespace treadle {

// Whether data can make `node` fail.
bool can_fail(const ir::Node& node);
// Whether all inputs that decide about sizes are constants: others may be wrong ones, even where the sizes follow
// without them.
bool knows_shape_inputs(const ir::Node& node);
// Whether `node` gives the same for the same inputs, never fails, and has inputs and outputs of known sizes, so that
// inference of a moved copy cannot fail either. Nodes with bodies and nodes without inputs are not looked into: false.
bool is_total(const ir::Node& node);

// For operators that pick positions of input 0 along attribute `axis`: whether input 1 is constants, all of them
// positions that there are.
bool picks_by_constants(const ir::Node& node);

}  // namespace treadle
