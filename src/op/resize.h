#pragma once
// Adapting kernels to other sizes (Kernel::resize). A value that grows in a loop has new sizes in each iteration, and
// preparing a kernel again takes longer than running it.

#include <span>

#include "op/context.h"

namespace treadle {

struct ResizeContext {
  std::span<const Operand> inputs;  // with new sizes and strides; all else is as prepared
  std::span<Operand> outputs;       // row-major; sizes to be set
  int threads = 1;
  size_t scratch_bytes = 0;  // to be set if it changes
};

}  // namespace treadle
