#pragma once
// Shapes. Dims has known sizes, for runs. Shape has Dim (known, symbolic or unknown sizes), for checking and planning.

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

// The product of sizes. Errors: kLimit if it exceeds 62 bits. Sizes of 0 count as 1 in this check, so that strides fit
// as well.
Result<int64_t> element_count(std::span<const int64_t> dims);
// The same for sizes of an existing tensor, which were checked when it was made. known_element_count() is for sizes of
// a type.
int64_t element_count_unchecked(const Dims& dims);
inline int64_t element_count_unchecked(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}
// The symbolic product: unknown if a factor is, but 0 if any factor is 0.
Dim element_count(const Shape& shape);

// Row-major strides in elements.
Dims contiguous_strides(const Dims& dims);
bool is_contiguous(const Dims& dims, const Dims& strides);

bool is_known(const Shape& shape);
Dims known_dims(const Shape& shape);  // only if is_known()
// The product of the known sizes of a shape. Inference can derive sizes that no tensor can have; then it is the largest
// number that element_count() allows.
int64_t known_element_count(const Shape& shape);
Shape to_shape(const Dims& dims);
bool same(const Shape& a, const Shape& b);
bool identical(const Shape& a, const Shape& b);
std::string to_string(const Dims& dims);    // "[2,3]"
std::string to_string(const Shape& shape);  // "[N,3,?]"

// The broadcast of two shapes by numpy's rule. An unknown size with 1 or unknown stays unknown; with k > 1 it becomes
// k.
Result<Shape> broadcast(const Shape& a, const Shape& b);
// The same, stored in `a`, which does not change on failure.
Status broadcast_into(Shape& a, const Shape& b);
// Turns an axis in [-rank, rank) into [0, rank). Errors: any other axis, called `what` in the message.
Result<int64_t> normalize_axis(int64_t axis, int64_t rank, std::string_view what = "axis");

}  // namespace treadle
