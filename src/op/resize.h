#pragma once
// Kernels that can be adapted to other sizes (Kernel::resize): values that grow in a loop have new ones in every trip,
// and preparing a kernel anew takes longer than running it.

#include <span>

#include "op/context.h"

namespace treadle {

struct ResizeContext {
  std::span<const Operand> inputs;  // sizes and strides may be others, all else is as it was prepared
  std::span<Operand> outputs;       // row-major; sizes to be set
  int threads = 1;
  size_t scratch_bytes = 0;  // to be set where it changes
};

}  // namespace treadle
