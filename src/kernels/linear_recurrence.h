#pragma once
// h_t = a_t h_(t-1) + b_t for independent lanes, as a scan over time in blocks: chunks of a block run side by side,
// each from zero, which gives what it makes of any state; the states between them follow, then the rows. The order of
// sums differs from that of the loop, and depends on nothing but the number of steps. Where a chunk's product or sum
// overflows, its steps go one by one: infinities and NaN are those of the loop.

#include <cstddef>
#include <cstdint>

#include "type/element_type.h"

namespace treadle::kernels {

struct LinearRecurrence {
  ElementType type = ElementType::kUndefined;  // float, double, or an integer of 32 or 64 bits, which wraps
  int64_t steps = 0;
  int64_t lanes = 0;
  // From step to step, in elements: `lanes`, or 0 where it is the same in all.
  int64_t a_stride = 0, b_stride = 0;
  bool reverse = false;  // from the last step to the first

  static bool supports(ElementType type);
  // Of all steps, on one thread.
  double estimated_ns() const { return static_cast<double>(steps * lanes); }
  size_t scratch_bytes() const;  // for several threads

  // `a` null: 1; `b` null: 0, but not both. `rows`: [steps, lanes]; `last`: [lanes], the state behind the last step.
  // Uses the threads of the calling thread's scope where there is `scratch`.
  void operator()(const void* a, const void* b, const void* initial, void* rows, void* last, void* scratch) const;
};

}  // namespace treadle::kernels
