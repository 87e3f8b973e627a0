#pragma once
// Kernels of operators that move elements with one strided copy per input or output.

#include <cstdint>

#include "base/thread_pool.h"
#include "kernels/move.h"
#include "op/context.h"

namespace treadle::tensor_ops {

// One copy between an input and an output, from byte `in_offset` to byte `out_offset`.
struct StridedCopy {
  kernels::CopyPlan plan;
  uint32_t input = 0;  // operand indices
  uint32_t output = 0;
  int64_t in_offset = 0;
  int64_t out_offset = 0;

  // Not worth a thread.
  bool is_small() const { return plan.ns < 2 * kMinThreadNs; }

  void run(void* const* slots, const uint32_t* operands) const {
    const char* from = static_cast<const char*>(slots[operands[input]]) + in_offset;
    char* to = static_cast<char*>(slots[operands[output]]) + out_offset;
    if (is_small()) return plan(from, to);
    parallel_for(plan.parts(), plan.ns / static_cast<double>(plan.parts()),
                 [&](int64_t begin, int64_t end, int) { plan.run_parts(from, to, begin, end); });
  }
};

// Input 0 to output 0: the element at index i of `dims` is input element in_start + sum(i * in_strides), in elements.
Status set_copy_kernel(PrepareContext& context, std::span<const int64_t> dims, std::span<const int64_t> in_strides,
                       std::span<const int64_t> out_strides, int64_t in_start = 0);

// Several copies, one after the other. Copies of nothing are left out by the caller.
void set_copies_kernel(PrepareContext& context, std::span<const StridedCopy> copies);

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
