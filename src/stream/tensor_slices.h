#pragma once
// Cutting tensors along an axis and putting them together, for any element type, also in memory that is there.

#include <array>
#include <span>
#include <vector>

#include "type/any_value.h"

namespace treadle {

// `length` positions of `axis` from `begin` on. A view where the memory allows it, else a copy.
Result<Tensor> slice_axis(const Tensor& tensor, int64_t axis, int64_t begin, int64_t length);

// Whether what is written into the place of a value overwrites nothing that somebody else sees.
bool is_free(const AnyValue& place);
// Whether, besides, it has this type and these sizes.
bool can_take(const AnyValue& place, ElementType type, const Dims& dims);

// Gives `value` this type and these sizes; what it holds is undefined. A free tensor of these sizes stays in its
// memory. With `room` so does one whose memory is large enough, and new memory has room for `room` positions of `axis`.
Status resize(AnyValue& value, ElementType type, const Dims& dims, int64_t axis = 0, int64_t room = 0);

// The functions below write into `into` after a resize().

Status copy_into(const AnyValue& from, AnyValue& into);  // shares what is not copied byte by byte

// `length` positions of `axis` from `begin` on.
Status slice_into(const Tensor& from, int64_t axis, int64_t begin, int64_t length, AnyValue& into, int64_t room = 0);

// Sizes must agree but for `axis`; kInvalidArgument otherwise.
Status concat_into(std::span<const Tensor* const> parts, int64_t axis, AnyValue& into, int64_t room = 0);

// Copies `length` positions of `axis` of `from`, beginning at `begin`, to `at` of the same axis of `to`. All other
// sizes must agree.
void copy_along(const Tensor& from, int64_t begin, int64_t length, Tensor& to, int64_t at, int64_t axis);

// Positions of an axis, from `begin` on.
struct Positions {
  int64_t axis, begin, length;
};
// Copies the block of `from` to the place in `to` that begins at position `at[i]` of the axis of `block[i]`. All other
// sizes must agree.
void copy_block(const Tensor& from, const std::array<Positions, 2>& block, Tensor& to,
                const std::array<int64_t, 2>& at);

// Copies all of `from` to row `at` of `to`, along the first axis of `to`.
void copy_row(const Tensor& from, Tensor& to, int64_t at);

Result<Tensor> zeros(ElementType type, Dims dims);

}  // namespace treadle
