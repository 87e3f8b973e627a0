#pragma once
// The two kinds of kernels of Resize, over the axes of make_taps(). Output 0 of `c` must not be empty.

#include <vector>

#include "ops/image/resample.h"

namespace treadle::image_ops {

// Copies elements of any type.
Status prepare_nearest(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes);
// Converts elements to float or double, combines them axis by axis, and converts them back.
Status prepare_interpolation(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes);

}  // namespace treadle::image_ops
