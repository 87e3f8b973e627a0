#pragma once
// Shapes: Dims holds known sizes (a run), Shape holds Dim (known, symbolic or unknown sizes; checking and planning).

#include <cstdint>
#include <string>

#include "base/inline_vector.h"
#include "base/status.h"
#include "type/dim.h"

namespace treadle {

template <>
inline constexpr bool kMovesByBytes<Dim> = true;

using Dims = InlineVector<int64_t, 6>;
using Shape = InlineVector<Dim, 6>;

// Product of sizes; error kLimit when it does not fit 62 bits (sizes of 0 left aside, so that strides fit as well).
Result<int64_t> element_count(std::span<const int64_t> dims);
// The same for sizes of a tensor that exists: they were checked when it was made. For sizes of a type:
// known_element_count.
int64_t element_count_unchecked(const Dims& dims);
inline int64_t element_count_unchecked(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
// Symbolic product; unknown when any factor is (0 when any is 0).
Dim element_count(const Shape& shape);

// Row-major strides in elements.
Dims contiguous_strides(const Dims& dims);
bool is_contiguous(const Dims& dims, const Dims& strides);

bool is_known(const Shape& shape);
Dims known_dims(const Shape& shape);  // only when is_known()
// Elements of a shape whose sizes are known. Inference can derive sizes of a tensor that no run can make: of these it
// is the largest number that element_count() allows.
int64_t known_element_count(const Shape& shape);
Shape to_shape(const Dims& dims);
bool same(const Shape& a, const Shape& b);
bool identical(const Shape& a, const Shape& b);
std::string to_string(const Dims& dims);    // "[2,3]"
std::string to_string(const Shape& shape);  // "[N,3,?]"

// Numpy broadcasting of two shapes. An unknown size against 1 or unknown stays unknown; against k > 1 it becomes k.
Result<Shape> broadcast(const Shape& a, const Shape& b);
// The same, into `a`, which stays as it is on failure.
Status broadcast_into(Shape& a, const Shape& b);
// axis in [-rank, rank) to [0, rank); error names `what` otherwise.
Result<int64_t> normalize_axis(int64_t axis, int64_t rank, std::string_view what = "axis");

}  // namespace treadle
