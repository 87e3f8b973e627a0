#pragma once
// Cutting tensors along an axis and joining them, for any element type, also in existing memory.

#include <array>
#include <span>
#include <vector>

#include "type/any_value.h"

namespace treadle {

// `length` positions of `axis` from `begin` on. A view if the memory allows it, otherwise a copy.
Result<Tensor> slice_axis(const Tensor& tensor, int64_t axis, int64_t begin, int64_t length);

// Whether the value's memory may be overwritten, because no other value refers to it.
bool is_free(const AnyValue& place);
// Whether the memory may be overwritten, and has this type and these sizes.
bool can_take(const AnyValue& place, ElementType type, const Dims& dims);

// Gives `value` this type and these sizes; its contents are undefined. A free tensor of these sizes keeps its memory.
// With `room`, a tensor keeps memory that is large enough, and new memory has room for `room` positions of `axis`.
Status resize(AnyValue& value, ElementType type, const Dims& dims, int64_t axis = 0, int64_t room = 0);

// The functions below resize() `into` and write into it.

Status copy_into(const AnyValue& from, AnyValue& into);  // values that are not copied byte by byte are shared

// `length` positions of `axis` from `begin` on.
Status slice_into(const Tensor& from, int64_t axis, int64_t begin, int64_t length, AnyValue& into, int64_t room = 0);

// Sizes must agree except along `axis`; otherwise the error is kInvalidArgument.
Status concat_into(std::span<const Tensor* const> parts, int64_t axis, AnyValue& into, int64_t room = 0);

// Copies `length` positions of `axis` of `from`, beginning at `begin`, to position `at` of the same axis of `to`. All
// other sizes must agree.
void copy_along(const Tensor& from, int64_t begin, int64_t length, Tensor& to, int64_t at, int64_t axis);

// Positions of an axis, from `begin` on.
struct Positions {
  int64_t axis, begin, length;
};
// Copies the block of `from` into `to`, to position `at[i]` along the axis of `block[i]`. All other sizes must agree.
void copy_block(const Tensor& from, const std::array<Positions, 2>& block, Tensor& to,
                const std::array<int64_t, 2>& at);

// Copies all of `from` to row `at` of `to`, along the first axis of `to`.
void copy_row(const Tensor& from, Tensor& to, int64_t at);

Result<Tensor> zeros(ElementType type, Dims dims);

}  // namespace treadle
