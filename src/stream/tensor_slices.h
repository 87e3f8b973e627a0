#pragma once
// Cutting tensors along an axis and putting them together, for any element type.

#include <span>
#include <vector>

#include "type/tensor.h"

namespace treadle {

// `length` positions of `axis` from `begin` on. A view where the memory allows it, else a copy.
Result<Tensor> slice_axis(const Tensor& tensor, int64_t axis, int64_t begin, int64_t length);

// Sizes must agree but for `axis`; kInvalidArgument otherwise.
Result<Tensor> concat_axis(std::span<const Tensor> parts, int64_t axis);

// Copies `length` positions of `axis` of `from`, beginning at `begin`, to `at` of the same axis of `to`. All other
// sizes must agree.
void copy_along(const Tensor& from, int64_t begin, int64_t length, Tensor& to, int64_t at, int64_t axis);

// All of one size, along a new first axis.
Result<Tensor> stack(std::span<const Tensor> parts);

Result<Tensor> zeros(ElementType type, Dims dims);

}  // namespace treadle
