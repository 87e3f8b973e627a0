#include "ops/image/resample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace treadle::image_ops {

namespace {

// The position of output element i in the input.
double original_position(Coordinates coordinates, const AxisScale& a, int64_t i) {
  const auto x = static_cast<double>(i);
  const auto in = static_cast<double>(a.in);
  const double out = a.scale * in;  // not rounded, unlike a.out
  switch (coordinates) {
    case Coordinates::kHalfPixel:
      return (x + 0.5) / a.scale - 0.5;
    case Coordinates::kHalfPixelSymmetric:
      return in / 2 * (1 - static_cast<double>(a.out) / out) + (x + 0.5) / a.scale - 0.5;
    case Coordinates::kPytorchHalfPixel:
      return out == 1 ? -0.5 : (x + 0.5) / a.scale - 0.5;
    case Coordinates::kAlignCorners:
      return out == 1 ? 0 : x * (in - 1) / (out - 1);
    case Coordinates::kAsymmetric:
      return x / a.scale;
    case Coordinates::kTfHalfPixelForNn:
      return (x + 0.5) / a.scale;
    case Coordinates::kTfCropAndResize: {
      const double span = (a.roi_end - a.roi_start) * (in - 1);
      return (out == 1 ? span / 2 : x * span / (out - 1)) + a.roi_start * (in - 1);
    }
  }
  return x;
}

int64_t nearest(const ResizeOptions& o, const AxisScale& a, double x) {
  const double low = std::floor(x);
  const double ratio = x - low;
  bool up = false;
  if (o.round_by_direction) {
    up = a.scale < 1 && ratio > 0;
  } else {
    switch (o.rounding) {
      case Rounding::kPreferFloor:
        up = ratio > 0.5;
        break;
      case Rounding::kPreferCeil:
        up = ratio >= 0.5;
        break;
      case Rounding::kFloor:
        break;
      case Rounding::kCeil:
        up = ratio > 0;
        break;
    }
  }
  return static_cast<int64_t>(low) + up;
}

double linear_weight(double x) {
  return std::max(0.0, 1 - std::abs(x));
}

// The kernel of cubic convolution with parameter a.
double cubic_weight(double x, double a) {
  x = std::abs(x);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Weights around position x of the `taps` input elements from `first` on. `shrink` widens the kernel for antialiasing.
void weigh(const ResizeOptions& o, double x, int64_t first, double shrink, int64_t in, double* weights, int64_t taps) {
  double sum = 0;
  for (int64_t k = 0; k < taps; ++k) {
    const double distance = (static_cast<double>(first + k) - x) * shrink;
    const bool outside = o.exclude_outside && (first + k < 0 || first + k >= in);
    weights[k] = outside                         ? 0
                 : o.mode == ResizeMode::kLinear ? linear_weight(distance)
                                                 : cubic_weight(distance, o.cubic_a);
    sum += weights[k];
  }
  if ((!o.antialias && !o.exclude_outside) || sum == 0) return;
  for (int64_t k = 0; k < taps; ++k) weights[k] /= sum;
}

int64_t reach_of(ResizeMode mode) {
  return mode == ResizeMode::kNearest ? 0 : mode == ResizeMode::kLinear ? 1 : 2;
}

// The scale of the kernel's argument: below 1, which widens the kernel, when shrinking with antialiasing.
double shrink_of(const ResizeOptions& o, const AxisScale& a) {
  return o.antialias ? std::min(a.scale, 1.0) : 1.0;
}

template <class T, size_t N>
Result<T> choice(const ir::Attributes& attributes, const char* name, const char* otherwise,
                 const std::pair<std::string_view, T> (&choices)[N]) {
  const std::string_view given = attributes.get_string(name, otherwise);
  for (const auto& [text, value] : choices) {
    if (text == given) return value;
  }
  std::string allowed;
  for (const auto& [text, value] : choices) allowed += fmt::format("{}{}", allowed.empty() ? "" : ", ", text);
  return error(Code::kInvalidModel, "attribute {} is '{}', expected one of: {}", name, given, allowed);
}

constexpr std::pair<std::string_view, ResizeMode> kModes[] = {{"nearest", ResizeMode::kNearest},
                                                              {"linear", ResizeMode::kLinear},
                                                              {"bilinear", ResizeMode::kLinear},  // of Upsample-1
                                                              {"cubic", ResizeMode::kCubic}};
constexpr std::pair<std::string_view, Coordinates> kCoordinates[] = {
    {"half_pixel", Coordinates::kHalfPixel},
    {"half_pixel_symmetric", Coordinates::kHalfPixelSymmetric},
    {"pytorch_half_pixel", Coordinates::kPytorchHalfPixel},
    {"align_corners", Coordinates::kAlignCorners},
    {"asymmetric", Coordinates::kAsymmetric},
    {"tf_crop_and_resize", Coordinates::kTfCropAndResize},
    {"tf_half_pixel_for_nn", Coordinates::kTfHalfPixelForNn}};
constexpr std::pair<std::string_view, Rounding> kRoundings[] = {{"round_prefer_floor", Rounding::kPreferFloor},
                                                                {"round_prefer_ceil", Rounding::kPreferCeil},
                                                                {"floor", Rounding::kFloor},
                                                                {"ceil", Rounding::kCeil}};

}  // namespace

Result<ResizeOptions> resize_options(const ir::NodeInfo& node, bool is_upsample, int version) {
  const ir::Attributes& a = node.attributes;
  ResizeOptions o;
  TREADLE_ASSIGN(o.mode, choice(a, "mode", "nearest", kModes));
  if (is_upsample || version < 11) {
    o.round_by_direction = true;
    return o;
  }
  TREADLE_ASSIGN(o.coordinates, choice(a, "coordinate_transformation_mode", "half_pixel", kCoordinates));
  TREADLE_ASSIGN(o.rounding, choice(a, "nearest_mode", "round_prefer_floor", kRoundings));
  o.antialias = a.get_int("antialias", 0) != 0;
  o.exclude_outside = a.get_int("exclude_outside", 0) != 0;
  o.cubic_a = a.get_float("cubic_coeff_a", -0.75f);
  o.extrapolation = a.get_float("extrapolation_value", 0);
  if (o.antialias && o.mode == ResizeMode::kNearest) {
    return error(Code::kInvalidModel, "antialias needs mode linear or cubic, found nearest");
  }
  return o;
}

Status check_taps(const ResizeOptions& o, const AxisScale& a) {
  constexpr double kMost = 1 << 28;
  const double taps = (2.0 * static_cast<double>(reach_of(o.mode)) / shrink_of(o, a) + 2) * static_cast<double>(a.out);
  if (taps <= kMost) return {};
  return error(Code::kLimit, "resizing {} elements to {} takes {} weights, more than {}", a.in, a.out, taps, kMost);
}

AxisTaps make_taps(const ResizeOptions& o, const AxisScale& a) {
  AxisTaps taps;
  taps.in = a.in;
  taps.out = a.out;
  const int64_t reach = reach_of(o.mode);
  const double shrink = shrink_of(o, a);
  // Elements floor(x) + begin to floor(x) + 1 - begin may have a weight.
  const auto begin = reach == 0 ? 0 : static_cast<int64_t>(std::floor(-static_cast<double>(reach) / shrink)) + 1;
  taps.taps = reach == 0 ? 1 : 2 - 2 * begin;
  taps.indices.resize(static_cast<size_t>(a.out * taps.taps));
  taps.weights.resize(static_cast<size_t>(a.out * taps.taps), 1.0);
  taps.identity = a.in == a.out && a.scale == 1.0;
  for (int64_t i = 0; i < a.out; ++i) {
    const double x = original_position(o.coordinates, a, i);
    if (o.coordinates == Coordinates::kTfCropAndResize && !(x >= 0 && x <= static_cast<double>(a.in - 1))) {
      taps.is_outside.resize(static_cast<size_t>(a.out));
      taps.is_outside[static_cast<size_t>(i)] = 1;
    }
    // Far outside, the result does not depend on x: only the edges count.
    const double near = std::clamp(std::isfinite(x) ? x : 0.0, -4.0, static_cast<double>(a.in) + 4.0);
    int64_t first = reach == 0 ? nearest(o, a, near) : static_cast<int64_t>(std::floor(near)) + begin;
    if (reach > 0) weigh(o, near, first, shrink, a.in, &taps.weights[static_cast<size_t>(i * taps.taps)], taps.taps);
    for (int64_t k = 0; k < taps.taps; ++k) {
      taps.indices[static_cast<size_t>(i * taps.taps + k)] = std::clamp<int64_t>(first + k, 0, a.in - 1);
    }
    taps.identity = taps.identity && x == static_cast<double>(i);
  }
  if (!taps.is_outside.empty()) taps.identity = false;
  return taps;
}

}  // namespace treadle::image_ops
