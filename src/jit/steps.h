#pragma once
// One step of an elementwise instruction as IR.

#include <functional>

#include "jit/ir_lanes.h"
#include "plan/native.h"

namespace treadle::jit {

// The services of the function into which a step is written.
class StepHost {
 public:
  virtual ~StepHost() = default;
  // Leaves the function with `code` if `condition` (i1) is true.
  virtual void fail_if(llvm::Value* condition, uint32_t code) = 0;
  // The address of the row function of an operation.
  virtual llvm::Value* row_function(kernels::ElementwiseOp op, ElementType type) = 0;
  // Memory in the function's frame.
  virtual llvm::Value* stack(size_t bytes) = 0;
};

// The IR type of one element; null if plan::is_native() is false. Bools are bytes; float16 and bfloat16 are their bits.
llvm::Type* element_ir_type(llvm::LLVMContext& context, ElementType type);

// Whether write_step() supports the step.
bool supports_step(const plan::ElementwiseCode::Step& step);

// `arguments`: of the scope's lane count. Returns the result in element_ir_type(step.to).
llvm::Value* write_step(const plan::ElementwiseCode::Step& step, llvm::ArrayRef<llvm::Value*> arguments,
                        StepHost& host);

}  // namespace treadle::jit
