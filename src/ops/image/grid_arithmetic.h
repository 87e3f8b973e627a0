#pragma once
// The arithmetic of AffineGrid and GridSample. V: double, or a value whose operations write code (c/values.h).

#include <cmath>
#include <cstdint>

namespace treadle::image_ops {

// What values that write code have as well.
inline double select(bool condition, double yes, double no) {
  return condition ? yes : no;
}

// The coordinate in [-1, 1] of position i along an axis of this size. `corners`: -1 and 1 are the centres of the first
// and the last element, not their outer borders.
inline double grid_coordinate(int64_t i, int64_t size, bool corners) {
  const auto at = static_cast<double>(i), n = static_cast<double>(size);
  return !corners ? (2 * at + 1) / n - 1 : size > 1 ? 2 * at / (n - 1) - 1 : -1.0;
}

// The position in elements of a coordinate.
template <class V>
V grid_position(V coordinate, V size, bool corners) {
  const V one(1), two(2);
  return corners ? (coordinate + one) / two * (size - one) : ((coordinate + one) * size - one) / two;
}

// Reflects x at the borders until it lies between them.
template <class V>
V reflected(V x, V low, V high) {
  using std::floor;
  const V zero(0), two(2), range = high - low;
  const auto below = x < low;
  const V distance = select(below, low - x, select(x > high, x - high, zero));
  const V turns = floor(distance / range);
  const V rest = distance - turns * range;
  const V half = floor(turns / two);
  const auto even = turns == half + half;
  const V turned = select((below & even) | (!below & !even), low + rest, high - rest);
  return select(range <= zero, low, select(distance == zero, x, turned));
}

// The weight of an element of a cubic interpolation at distance x, at most 1, or from 1 to 2.
constexpr double kCubicSlope = -0.75;
template <class V>
V cubic_near(V x) {
  return (V(kCubicSlope + 2) * x - V(kCubicSlope + 3)) * x * x + V(1);
}
template <class V>
V cubic_far(V x) {
  const V a(kCubicSlope);
  return ((a * x - V(5 * kCubicSlope)) * x + V(8 * kCubicSlope)) * x - V(4 * kCubicSlope);
}

}  // namespace treadle::image_ops
