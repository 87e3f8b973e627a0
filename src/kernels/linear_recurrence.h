#pragma once
// h_t = a_t h_(t-1) + b_t for independent lanes, as a scan over time in blocks. The chunks of a block run side by side,
// each from zero, which gives each chunk's effect on any state. Then the states between chunks are computed, then the
// rows. The order of sums differs from the loop's, and depends on the number of steps only. If a chunk's product or sum
// overflows, its steps run one by one, so infinities and NaN are those of the loop.

#include <cstddef>
#include <cstdint>

#include "type/element_type.h"

namespace treadle::kernels {

struct LinearRecurrence {
  ElementType type = ElementType::kUndefined;  // float, double, or an integer of 32 or 64 bits, which wraps
  int64_t steps = 0;
  int64_t lanes = 0;
  // Elements from one step to the next: `lanes`, or 0 if all steps have the same.
  int64_t a_stride = 0, b_stride = 0;
  bool reverse = false;  // runs from the last step to the first

  static bool supports(ElementType type);
  // Estimated time of all steps on one thread.
  double estimated_ns() const { return static_cast<double>(steps * lanes); }
  size_t scratch_bytes() const;  // for a run on several threads

  // `a` null: 1; `b` null: 0; one of them must not be null. `rows`: [steps, lanes]. `last`: [lanes], the state after
  // the last step. With `scratch`, uses the threads of the calling thread's scope.
  void operator()(const void* a, const void* b, const void* initial, void* rows, void* last, void* scratch) const;
};

}  // namespace treadle::kernels
