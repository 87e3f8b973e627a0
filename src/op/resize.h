#pragma once
// Kernels that can be adapted to other sizes: values that grow in a loop have new ones in every trip, and preparing a
// kernel anew takes longer than running it.

#include <span>

#include "op/context.h"

namespace treadle {

struct ResizeContext {
  std::span<const Operand> inputs;  // sizes and strides may be others, all else is as it was prepared
  std::span<Operand> outputs;       // row-major; sizes to be set
  int threads = 1;
  size_t scratch_bytes = 0;  // to be set where it changes
};

// Makes the state of a prepared kernel one for these sizes. False, leaving it as it was, where it cannot: the sizes
// want another kernel, or do not fit each other.
using ResizeFn = bool (*)(void* state, ResizeContext& ctx);

// Says how kernels that run `run` are resized. An object with static storage duration:
//   const Resizable kResizable(run_plain, resize_product);
class Resizable {
 public:
  Resizable(KernelFn run, ResizeFn resize) : run_(run), resize_(resize), next_(first_) { first_ = this; }
  Resizable(const Resizable&) = delete;
  // Null: such kernels are prepared anew.
  static ResizeFn find(KernelFn run);

 private:
  KernelFn run_;
  ResizeFn resize_;
  const Resizable* next_;
  static const Resizable* first_;
};

}  // namespace treadle
