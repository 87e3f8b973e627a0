#pragma once
// Resampling along one axis: the input elements and weights of each output element.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "op/context.h"

namespace treadle::image_ops {

enum class ResizeMode : uint8_t { kNearest, kLinear, kCubic };
enum class Coordinates : uint8_t {
  kHalfPixel,
  kHalfPixelSymmetric,
  kPytorchHalfPixel,
  kAlignCorners,
  kAsymmetric,
  kTfCropAndResize,
  kTfHalfPixelForNn,
};
enum class Rounding : uint8_t { kPreferFloor, kPreferCeil, kFloor, kCeil };

struct ResizeOptions {
  ResizeMode mode = ResizeMode::kNearest;
  Coordinates coordinates = Coordinates::kAsymmetric;
  Rounding rounding = Rounding::kFloor;
  bool round_by_direction = false;  // versions before 11: floor when enlarging, ceil when shrinking
  bool antialias = false;
  bool exclude_outside = false;
  float cubic_a = -0.75f;
  float extrapolation = 0;
};
Result<ResizeOptions> resize_options(const ir::NodeInfo& node, bool is_upsample, int version);

// One axis of a resize; scale is output over input, roi only for kTfCropAndResize.
struct AxisScale {
  int64_t in = 0, out = 0;
  double scale = 1;
  double roi_start = 0, roi_end = 1;
};

// Output element i is the sum over k < taps of weights[i * taps + k] * input[indices[i * taps + k]].
struct AxisTaps {
  int64_t in = 0, out = 0, taps = 1;
  std::vector<int64_t> indices;
  std::vector<double> weights;      // all 1 for kNearest
  std::vector<uint8_t> is_outside;  // by output element: the extrapolation value is used; empty: none
  bool identity = false;            // output i is input i
};
// Errors: the taps of an axis would take more memory than any image needs.
Status check_taps(const ResizeOptions& options, const AxisScale& axis);
AxisTaps make_taps(const ResizeOptions& options, const AxisScale& axis);

}  // namespace treadle::image_ops
