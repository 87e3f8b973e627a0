#pragma once
// The two kinds of kernels of Resize, over the axes of make_taps(). Output 0 of `c` must not be empty.

#include <functional>
#include <vector>

#include "ops/image/resample.h"

namespace treadle::image_ops {

// The taps of each axis of a resize or Upsample of `in` to `out`. `constant(i)`: the contents of input i, undefined
// where there is no such input or it has no elements.
Result<std::vector<AxisTaps>> resize_taps(const ir::NodeInfo& node, const ResizeOptions& options, const Dims& in,
                                          const Dims& out, const std::function<Tensor(size_t)>& constant);
Result<ResizeOptions> resize_options(const ir::NodeInfo& node);
// Which axes an interpolation takes after each other.
std::vector<size_t> cheapest_order(const std::vector<AxisTaps>& axes);

// Copies elements of any type.
Status prepare_nearest(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes);
// Converts elements to float or double, combines them axis by axis, and converts them back.
Status prepare_interpolation(PrepareContext& c, const ResizeOptions& options, std::vector<AxisTaps> axes);

}  // namespace treadle::image_ops
