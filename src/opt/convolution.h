#pragma once
// What fuse_convolutions will do, for passes that come before it.

#include "opt/uses.h"

namespace treadle::opt {

// Whether the node is a Clip that becomes a bound of the convolution before it, or of the convolution before the sums
// before it. `uses`: of the graph.
bool goes_into_convolution(const ir::Node& node, const Uses& uses);

}  // namespace treadle::opt
