#pragma once
// Kernels of operators that move elements with one strided copy per input or output.

#include <cstdint>

#include "op/context.h"

namespace treadle::tensor_ops {

// Input 0 to output 0: the element at index i of `dims` is input element in_start + sum(i * in_strides), in elements.
Status set_copy_kernel(PrepareContext& context, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                       std::span<const int64_t> out_strides, int64_t in_start = 0);

// What is copied between an input and an output of a node, counted in elements, as set_copy_kernel does.
struct CopiedPart {
  size_t input = 0, output = 0;
  std::span<const int64_t> dims, in_strides, out_strides;
  int64_t in_start = 0, out_start = 0;
};
// Several copies, one after the other; all outputs present and filled where the kernel is used. Parts without elements
// do nothing.
Status set_copies_kernel(PrepareContext& context, std::span<const CopiedPart> parts);

// Calls fn with an integral constant: the width of an element in bytes (1, 2, 4, 8 or 16).
template <class Fn>
auto with_width(size_t width, Fn&& fn) {
  switch (width) {
    case 1:
      return fn(std::integral_constant<size_t, 1>());
    case 2:
      return fn(std::integral_constant<size_t, 2>());
    case 4:
      return fn(std::integral_constant<size_t, 4>());
    case 8:
      return fn(std::integral_constant<size_t, 8>());
    default:
      return fn(std::integral_constant<size_t, 16>());
  }
}

}  // namespace treadle::tensor_ops
