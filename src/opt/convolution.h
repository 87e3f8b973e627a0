#pragma once
// What a convolution takes in, for the passes that make it do so and for those that come before them.

#include <optional>

#include "opt/uses.h"

namespace treadle::opt {

struct ClampBounds {
  float low, high;
};
// Of a Relu, or a Clip of known bounds, of floats.
std::optional<ClampBounds> clamp_of(const ir::Node& node);

// Whether the node is a Clip that becomes a bound of the convolution before it, or of the convolution before the sums
// before it. `uses`: of the graph.
bool goes_into_convolution(const ir::Node& node, const Uses& uses);

}  // namespace treadle::opt
