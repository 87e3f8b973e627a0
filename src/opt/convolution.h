#pragma once
// Which nodes a convolution absorbs, for the passes that do so and for the passes before them.

#include <optional>

#include "opt/uses.h"

namespace treadle::opt {

struct ClampBounds {
  float low, high;
};
// The bounds of a Relu, or of a Clip with known bounds, of floats.
std::optional<ClampBounds> clamp_of(const ir::Node& node);

// Whether the node is a Clip that becomes the bounds of a convolution before it, or of a convolution with sums in
// between. `uses`: uses in the whole graph.
bool goes_into_convolution(const ir::Node& node, const Uses& uses);

}  // namespace treadle::opt
